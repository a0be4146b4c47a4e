"""Small worlds for the operator's tests: a job, the objects that the API server would have, and pods in any state."""

import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from millrace_operator.actions import Action, Apply, Delete, Finalizers, Manifest, Warn, WriteStatus
from millrace_operator.settings import Settings
from millrace_operator.streamjobs.plan import FINALIZER, Plan, plan
from millrace_operator.streamjobs.state import Ended, Observed, Pod, Progress, parse_resource

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
SETTINGS = Settings()


def spec(**changes: Any) -> Manifest:
    made: Manifest = {
        "sources": [
            {
                "name": "views",
                "topic": "pageviews",
                "schema": "user string, url string, at timestamp",
                "eventTime": {"column": "at"},
            }
        ],
        "transform": [
            {"window": {"type": "tumbling", "size": "1m", "by": ["url"], "aggregates": {"views": "count(*)"}}}
        ],
        "sinks": [{"topic": "views-per-minute", "key": ["window_start", "url"]}],
        "executors": {"instances": 1},
    }
    return made | changes


def driver(seconds: float = 60, **changes: Any) -> Pod:
    """A driver's pod whose container has run for so long."""
    since = NOW - timedelta(seconds=seconds)
    made = Pod("views-driver-0", "pod-1", "driver", "Running", since, ready=True, revision=1, running_since=since)
    return replace(made, **changes)


def executor(seconds: float = 60, **changes: Any) -> Pod:
    since = NOW - timedelta(seconds=seconds)
    return replace(Pod("views-exec-1", "pod-2", "executor", "Running", since, running_since=since), **changes)


def moving(**changes: Any) -> Progress:
    return replace(Progress(state="running", batch=7, advanced=NOW, healthy=True), **changes)


def ended(code: int, **changes: Any) -> Ended:
    return replace(Ended(code, "Error", NOW), **changes)


@dataclass
class World:
    """The API server's memory: what is applied stays, and the next look sees it."""

    spec: Manifest = field(default_factory=spec)
    generation: int = 1
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = (FINALIZER,)
    status: Manifest = field(default_factory=dict)
    deleting: bool = False
    objects: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    warnings: list[Warn] = field(default_factory=list)
    now: datetime = NOW

    def edit(self, **changes: Any) -> None:
        self.spec = {**self.spec, **changes}
        self.generation += 1

    def look(self, **seen: Any) -> Plan:
        return plan(self.observed(**seen), SETTINGS)

    def observed(self, **seen: Any) -> Observed:
        meta = {
            "name": "views",
            "namespace": "shop",
            "uid": "uid-1",
            "generation": self.generation,
            "annotations": self.annotations,
            "finalizers": list(self.finalizers),
            **({"deletionTimestamp": "2026-03-01T12:00:00Z"} if self.deleting else {}),
        }
        body = {"apiVersion": "millrace.io/v1alpha1", "kind": "StreamJob", "metadata": meta, "spec": self.spec}
        resource = parse_resource({**body, "status": self.status})
        return Observed(resource, self.now, objects=copy.deepcopy(self.objects), **seen)

    def settle(self, **seen: Any) -> Plan:
        """Look, and do what was planned."""
        made = self.look(**seen)
        for action in made.actions:
            self._do(action)
        return made

    def _do(self, action: Action) -> None:
        match action:
            case Apply(manifest):
                self.objects[manifest["kind"], manifest["metadata"]["name"]] = copy.deepcopy(manifest)
            case WriteStatus(_, status):
                self.status = status
            case Finalizers(_, _, names):
                self.finalizers = names
            case Delete(ref):
                self.objects.pop((ref.kind, ref.name), None)
            case Warn():
                self.warnings.append(action)

    @property
    def replicas(self) -> int:
        return int(self.objects["StatefulSet", "views-driver"]["spec"]["replicas"])

    @property
    def pod_annotations(self) -> dict[str, str]:
        template: dict[str, str] = self.objects["StatefulSet", "views-driver"]["spec"]["template"]["metadata"][
            "annotations"
        ]
        return template


def condition(made: Plan, kind: str) -> tuple[str, str]:
    found = next(one for one in made.status["conditions"] if one["type"] == kind)
    return found["status"], found["reason"]


def message(made: Plan, kind: str) -> str:
    return str(next(one for one in made.status["conditions"] if one["type"] == kind)["message"])


def writes(made: Plan) -> list[str]:
    """What would be written, without the status and events."""
    return [str(one) for one in made.actions if not isinstance(one, WriteStatus | Warn)]
