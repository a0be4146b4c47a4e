"""What was seen of a job, as frozen values: parsed once from the API server's objects, never written to.

It asks nobody; the edge brings the objects.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from millrace_operator.actions import Manifest, Ref
from millrace_operator.desired.target import REVISION, ROLE_LABEL

Objects = Mapping[tuple[str, str], Manifest]
"""The job's objects by kind and name."""


@dataclass(frozen=True)
class Resource:
    """The StreamJob as the API server has it, not yet judged."""

    ref: Ref
    uid: str
    generation: int
    spec: Manifest
    status: Manifest
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...]
    deleting: bool


@dataclass(frozen=True)
class Ended:
    """How a container ended."""

    code: int
    reason: str
    at: datetime
    cause: str | None = None
    """The driver's own word for it, where it left one."""
    message: str = ""
    ran: timedelta = timedelta()

    @property
    def key(self) -> str:
        return self.at.isoformat()


@dataclass(frozen=True)
class Pod:
    """A driver's or an executor's pod."""

    name: str
    uid: str
    role: str
    phase: str
    created: datetime
    ready: bool = False
    deleting: bool = False
    revision: int | None = None
    running_since: datetime | None = None
    waiting: str | None = None
    """Kubernetes' reason why the container does not run."""
    waiting_message: str = ""
    unschedulable: str | None = None
    ended: Ended | None = None
    restarts: int = 0
    ip: str | None = None


@dataclass(frozen=True)
class Progress:
    """How the job moves: told by its driver, or else seen from its consumer group."""

    told_by: str = "driver"
    state: str | None = None
    cause: str | None = None
    message: str | None = None
    batch: int | None = None
    advanced: datetime | None = None
    """When the batch, or the group's position, was last seen to move."""
    read: int = 0
    dropped: int = 0
    late_ratio: float | None = None
    """The part of recent events that was late."""
    watermark: str | None = None
    moved: bool = False
    """A batch was finished in this run of the driver."""
    healthy: bool | None = None
    """Its /healthz: batches advance, or there is nothing to do. None: it did not answer."""


@dataclass(frozen=True)
class Lag:
    """What the lag observer says."""

    records: int
    seconds: float
    verdict: str | None = None


@dataclass(frozen=True)
class TopicProblem:
    """A topic of the job that is not usable."""

    topic: str
    reason: str
    message: str


@dataclass(frozen=True)
class Observed:
    """Everything that a plan is made from."""

    resource: Resource
    now: datetime
    objects: Objects = field(default_factory=dict)
    pods: tuple[Pod, ...] = ()
    complaints: tuple[str, ...] = ()
    """Messages of Kubernetes about pods that it could not make."""
    progress: Progress | None = None
    lag: Lag | None = None
    topic_problems: tuple[TopicProblem, ...] | None = None
    """None: nobody could say."""
    refusals: tuple[str, ...] = ()
    """What the API server said to writes of the last round that it refused."""

    @property
    def driver(self) -> Pod | None:
        return next((pod for pod in self.pods if pod.role == "driver"), None)

    @property
    def executors(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.role == "executor" and not pod.deleting]


def parse_resource(body: Mapping[str, Any]) -> Resource:
    meta = body["metadata"]
    return Resource(
        ref=Ref(body["apiVersion"], body["kind"], meta["namespace"], meta["name"]),
        uid=meta["uid"],
        generation=meta.get("generation", 0),
        spec=body.get("spec") or {},
        status=body.get("status") or {},
        annotations=meta.get("annotations") or {},
        finalizers=tuple(meta.get("finalizers") or ()),
        deleting=meta.get("deletionTimestamp") is not None,
    )


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def format_time(at: datetime) -> str:
    return at.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def parse_pod(body: Mapping[str, Any]) -> Pod:
    meta, status = body["metadata"], body.get("status") or {}
    container: Manifest = next(iter(status.get("containerStatuses") or ()), {})
    state, last = container.get("state") or {}, container.get("lastState") or {}
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    waiting, running = state.get("waiting") or {}, state.get("running") or {}
    revision = (meta.get("annotations") or {}).get(REVISION)
    return Pod(
        name=meta["name"],
        uid=meta["uid"],
        role=(meta.get("labels") or {}).get(ROLE_LABEL, ""),
        phase=status.get("phase", "Pending"),
        created=parse_time(meta["creationTimestamp"]),
        ready=conditions.get("Ready", {}).get("status") == "True",
        deleting=meta.get("deletionTimestamp") is not None,
        revision=int(revision) if revision else None,
        running_since=parse_time(running["startedAt"]) if running.get("startedAt") else None,
        waiting=waiting.get("reason"),
        waiting_message=waiting.get("message", ""),
        unschedulable=_unschedulable(conditions.get("PodScheduled", {})),
        ended=_ended([state.get("terminated"), last.get("terminated")], status),
        restarts=container.get("restartCount", 0),
        ip=status.get("podIP"),
    )


def _unschedulable(condition: Manifest) -> str | None:
    return str(condition.get("message", "")) if condition.get("reason") == "Unschedulable" else None


def _ended(states: Iterable[Manifest | None], status: Manifest) -> Ended | None:
    for one in states:
        if one and one.get("finishedAt"):
            cause, message = _last_words(one.get("message") or "")
            at = parse_time(one["finishedAt"])
            ran = at - parse_time(one["startedAt"]) if one.get("startedAt") else timedelta()
            return Ended(one["exitCode"], one.get("reason", ""), at, cause, message, ran)
    return _evicted(status)


def _evicted(status: Manifest) -> Ended | None:
    if status.get("phase") != "Failed" or not status.get("reason"):
        return None
    at = parse_time(status.get("startTime") or "1970-01-01T00:00:00Z")
    return Ended(1, status["reason"], at, None, status.get("message", ""))


def _last_words(text: str) -> tuple[str | None, str]:
    """The driver's last line is JSON with cause and message; anything else is shown as it is."""
    lines = text.strip().splitlines()
    for line in reversed(lines):
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and isinstance(said.get("cause"), str):
            return said["cause"], str(said.get("message") or "")
    return None, "\n".join([*lines[-1:], *lines[-5:-1]])  # the exception itself first, then where it was raised
