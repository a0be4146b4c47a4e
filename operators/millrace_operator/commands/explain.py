"""`millrace explain JOB`: conditions, pods, progress and events on one page, the most likely cause first."""

import asyncio
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.commands import Command
from millrace.errors import UserError
from millrace_operator.actions import Manifest
from millrace_operator.commands.reading import add_cluster_options, connect, explained, get, observe
from millrace_operator.desired.target import METRICS_PORT
from millrace_operator.edge.api import Api, ApiError, UnreachableError
from millrace_operator.streamjobs.state import Observed, Pod

DESCRIPTION = """\
Puts what is known about a job on one page: the most likely cause of what is wrong and what to do about it, then its
conditions, pods, progress and latest warnings.

  millrace explain pageviews-per-minute -n shop"""

EVENTS = 8
ADVICE: Mapping[str, str] = {
    "ImageCannotBePulled": "Check driver.image and that the nodes may pull it.",
    "QuotaExceeded": "Raise the namespace's ResourceQuota, or make driver and executors smaller.",
    "Unschedulable": "Make driver or executors smaller, or add nodes.",
    "VolumeNotBound": "Check that checkpoint.volumeClaim.storageClass exists and offers ReadWriteMany.",
    "ConfigMissing": "Make the Secret that the spec names.",
    "BrokerRefused": "Check the keys of the Secret that kafka.authSecret names; the job goes on by itself.",
    "BrokerUnreachable": "Check kafka.bootstrapServers and that the brokers are up; the job goes on by itself.",
    "TopicMissing": "Make a Topic resource for it, or correct the name.",
    "ExecutorsMissing": "See the executors' pods below: quota, room on the nodes, or their image.",
    "NoProgress": "The operator starts it again; if that repeats, look at the driver's log for the batch that hangs.",
    "UserCodeRaised": "Correct the job's own code or SQL, then apply it: that is a new chance.",
    "SpecRefused": "Correct the spec, then apply it.",
    "CheckpointMisfit": "Put the old value back, or set upgrade.mode: restart-empty to begin with new state.",
    "Killed": "Most likely the memory: raise driver.memory.",
    "OutOfMemory": "Raise driver.memory.",
    "NeedsNewState": "Put the field back, or set upgrade.mode: restart-empty, or make a job of another name.",
    "InvalidSpec": "Correct the field that is named; the version before runs on.",
    "ObjectRefused": "Read what the API server says; often a quota, a policy, or a volume that cannot shrink.",
}
BAD = (("Stalled", "True"), ("TopicsReady", "False"), ("LagHealthy", "False"), ("StragglersHealthy", "False"))
REFUSALS = ("InvalidSpec", "NeedsNewState")


@dataclass(frozen=True)
class Facts:
    """Everything that the page is made from."""

    observed: Observed
    events: tuple[Manifest, ...] = ()
    driver: Mapping[str, Any] | None = None


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="name of the StreamJob")
    add_cluster_options(parser)


def run(arguments: Namespace) -> int:
    api, namespace = connect(arguments)
    try:
        print(asyncio.run(_page(api, namespace, arguments.job)))
    except (ApiError, UnreachableError) as error:
        raise explained(error) from None
    return 0


async def _page(api: Api, namespace: str, name: str) -> str:
    async with api:
        body = await get(api, "StreamJob", namespace, name)
        if body is None:
            raise UserError(f"There is no StreamJob {name} in namespace {namespace}; see `kubectl get streamjobs -A`.")
        observed = await observe(api, body)
        names = {name, f"{name}-driver", *(pod.name for pod in observed.pods)}
        events = [
            one for one in await api.list("Event", namespace, fieldSelector="type=Warning") if _about(one) in names
        ]
        return "\n".join(page(Facts(observed, tuple(events), await _ask(api, observed))))


def _about(event: Manifest) -> str:
    return str(event.get("involvedObject", {}).get("name", ""))


async def _ask(api: Api, observed: Observed) -> Mapping[str, Any] | None:
    driver = observed.driver
    if driver is None or driver.running_since is None:
        return None
    path = f"/api/v1/namespaces/{observed.resource.ref.namespace}/pods/{driver.name}:{METRICS_PORT}/proxy/status"
    try:
        said = json.loads(await api.request("GET", path, deadline=5.0))
    except (ApiError, UnreachableError, ValueError):
        return None
    return said if isinstance(said, dict) else None


def page(facts: Facts) -> Iterator[str]:
    resource, status = facts.observed.resource, facts.observed.resource.status
    state = status.get("state", "not seen by an operator yet")
    yield f"StreamJob {resource.ref.namespace}/{resource.ref.name}: {state}"
    yield from _cause(status)
    yield "\nConditions"
    for one in status.get("conditions") or ():
        yield f"  {one['type']:<18}{one['status']:<8}{one['reason']:<20}{_one_line(one['message'])}".rstrip()
    yield "\nPods"
    yield from (_pod(pod) for pod in sorted(facts.observed.pods, key=lambda pod: pod.name))
    if not facts.observed.pods:
        yield "  none"
    yield "\nProgress"
    yield from _progress(facts, status)
    yield "\nLatest warnings"
    yield from _events(facts.events)


def _cause(status: Manifest) -> Iterator[str]:
    """The first bad thing in the order in which one causes the other."""
    found = {one["type"]: one for one in status.get("conditions") or ()}
    worst = next((found[kind] for kind, bad in BAD if found.get(kind, {}).get("status") == bad), None)
    refused = found.get("Progressing", {})
    for one in (worst, refused if refused.get("reason") in REFUSALS else None):
        if one is not None:
            yield f"  Most likely cause: {one['reason']}: {_one_line(one['message'])}"
            yield from (f"  What to do: {ADVICE[one['reason']]}" for _ in [0] if one["reason"] in ADVICE)
    if worst is None and refused.get("reason") not in REFUSALS:
        yield "  Nothing is wrong."


def _pod(pod: Pod) -> str:
    parts = [f"  {pod.name:<32}{pod.role:<10}{pod.phase:<10}restarts {pod.restarts}"]
    if pod.waiting:
        parts.append(f"waits: {pod.waiting} {_one_line(pod.waiting_message)}")
    if pod.unschedulable:
        parts.append(f"not scheduled: {_one_line(pod.unschedulable)}")
    if pod.ended is not None:
        parts.append(f"ended with {pod.ended.code}: {_one_line(pod.ended.message)}")
    return "  ".join(parts)


def _progress(facts: Facts, status: Manifest) -> Iterator[str]:
    said = facts.driver
    if said is None:
        yield f"  the driver does not answer; last known: {json.dumps(status.get('progress') or {})}"
    else:
        took = f"{said.get('batch_seconds') or 0:.1f} s"
        yield f"  {said.get('state')}, batch {said.get('batch')} ({took}), watermark {said.get('watermark')}"
        for name, one in (said.get("sources") or {}).items():
            yield f"  source {name}: " + ", ".join(f"{key} {value}" for key, value in one.items() if value)
    if "lag" in status:
        yield f"  lag {status['lag']}, {status.get('lagRecords')} records"
    yield f"  restarts {status.get('restarts', 0)}: {json.dumps((status.get('failures') or {}).get('causes') or {})}"


def _events(events: tuple[Manifest, ...]) -> Iterator[str]:
    ordered = sorted(events, key=lambda one: one.get("lastTimestamp") or one["metadata"].get("creationTimestamp") or "")
    for one in ordered[-EVENTS:]:
        yield f"  {one.get('lastTimestamp')}  {_about(one)}: {one.get('reason')}: {_one_line(one.get('message', ''))}"
    if not events:
        yield "  none"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:240]


COMMAND = Command("explain", "why a job on a cluster does what it does", DESCRIPTION, add_arguments, run)
