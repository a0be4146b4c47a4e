"""Observed state in, actions and status out. The whole of it, every time; no client, no clock, no memory."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from millrace.resources.metadata import API_GROUP
from millrace_operator import desired
from millrace_operator.actions import Action, Annotate, Apply, Delete, Finalizers, Manifest, Ref, Warn, WriteStatus
from millrace_operator.desired.target import FINGERPRINT, PAUSE, RESTART, Target
from millrace_operator.settings import Settings
from millrace_operator.streamjobs import alerting, causes, failures, status
from millrace_operator.streamjobs.accept import Verdict, judge
from millrace_operator.streamjobs.state import Observed, format_time
from millrace_operator.streamjobs.status import Situation

FINALIZER = f"{API_GROUP}/stop"
HUNG_SECONDS = 10  # a driver that hangs will not finish its batch, so there is nothing to wait for


@dataclass(frozen=True)
class Plan:
    """What to do now, what to tell, and when to look again (seconds)."""

    actions: tuple[Action, ...]
    status: Manifest
    verdict: Verdict
    look_again: float | None = None


def plan(observed: Observed, settings: Settings) -> Plan:
    verdict = judge(observed.resource, observed.objects)
    if observed.resource.deleting:
        return _deletion(observed, verdict, settings)
    if observed.resource.annotations.get(PAUSE) == "true":
        return _told(
            Situation(observed, verdict, failures.from_status(observed.resource.status), paused=True), (), None
        )
    hold = () if FINALIZER in observed.resource.finalizers else (_finalizers(observed, FINALIZER),)
    if verdict.target is None:
        return _told(Situation(observed, verdict, failures.Record()), hold, None)
    situation, steps = _running(observed, verdict, verdict.target, settings)
    return _told(situation, (*hold, *steps), _look_again(situation, settings))


def _running(
    observed: Observed, verdict: Verdict, target: Target, settings: Settings
) -> tuple[Situation, list[Action]]:
    policy = target.job.spec.restart
    version = f"{observed.resource.generation}/{observed.resource.annotations.get(RESTART, '')}"
    record = failures.renew(
        failures.from_status(observed.resource.status), version, observed.driver, policy, observed.now
    )
    steps: list[Action] = []
    driver = observed.driver
    if driver is not None and causes.is_hung(observed, target):
        record = failures.hung(record, driver, policy, observed.now, causes.no_progress(observed).message)
        steps = [Delete(_pod_ref(observed, driver.name), "no progress: start it again", driver.uid, HUNG_SECONDS)]
    suspended = target.job.spec.suspend
    running = not suspended and not record.holds(observed.now)
    target = replace(target, running=running)
    cause = None if suspended else causes.find(observed, target, record, settings.patience)
    situation = Situation(observed, replace(verdict, target=target), record, cause, suspended)
    changed = list(writes(observed, target, settings))
    return situation, [*changed, *_hurry(observed, changed), *steps]


def _hurry(observed: Observed, changed: list[Apply]) -> Iterator[Annotate]:
    """A change of its pod makes the kubelet bring a changed ConfigMap at once, not within its usual minute."""
    driver = observed.driver
    for one in changed:
        if driver is not None and not driver.deleting and one.manifest["kind"] == "ConfigMap" and one.why != "create":
            mark = one.manifest["metadata"]["annotations"][FINGERPRINT]
            yield Annotate(_pod_ref(observed, driver.name), FINGERPRINT, mark)


def writes(observed: Observed, target: Target, settings: Settings) -> Iterator[Apply]:
    """The objects that are not as they should be."""
    for manifest in desired.everything(target, settings.jobs):
        wanted = with_fingerprint(manifest)
        found = observed.objects.get((wanted["kind"], wanted["metadata"]["name"]))
        if found is None:
            yield Apply(wanted, "create")
        elif _fingerprint_of(found) != wanted["metadata"]["annotations"][FINGERPRINT]:
            yield Apply(wanted, "change")
        elif not covers(found, wanted):
            yield Apply(wanted, "put back what someone else changed")


def with_fingerprint(manifest: Manifest) -> Manifest:
    """The manifest with a hash of itself, by which a field that was taken out is noticed too."""
    text = json.dumps(manifest, sort_keys=True)
    mark = hashlib.sha256(text.encode()).hexdigest()[:16]
    meta = manifest["metadata"]
    return {**manifest, "metadata": {**meta, "annotations": {**meta["annotations"], FINGERPRINT: mark}}}


def covers(found: Any, wanted: Any) -> bool:
    """Whether everything that is wanted is found; what the API server adds beside it does not matter."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            covers(found.get(key), value) for key, value in wanted.items() if value != {} and value != []
        )
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(covers(one, other) for one, other in zip(found, wanted, strict=True))
    return bool(found == wanted)


def _fingerprint_of(manifest: Manifest) -> str | None:
    mark: str | None = (manifest["metadata"].get("annotations") or {}).get(FINGERPRINT)
    return mark


def _deletion(observed: Observed, verdict: Verdict, settings: Settings) -> Plan:
    """Stop at a batch boundary, then let everything go, the volume only where the spec says so."""
    situation = Situation(observed, verdict, failures.from_status(observed.resource.status), suspended=True)
    if FINALIZER not in observed.resource.finalizers:
        return Plan((), observed.resource.status, verdict)
    target = verdict.target
    if target is not None and (observed.driver is not None or _replicas(observed, target)):
        stop = [one for one in writes(observed, replace(target, running=False), settings) if _is_driver(one)]
        return _told(situation, tuple(stop), settings.pace.look)
    volume = _volume_to_delete(observed, target) if target is not None else ()
    return Plan((*volume, _finalizers(observed)), observed.resource.status, verdict)


def _is_driver(step: Apply) -> bool:
    return bool(step.manifest["kind"] == "StatefulSet")


def _replicas(observed: Observed, target: Target) -> int:
    for (kind, _), found in observed.objects.items():
        if kind == "StatefulSet":
            return int(found["spec"].get("replicas", 1))
    return 0


def _volume_to_delete(observed: Observed, target: Target) -> tuple[Delete, ...]:
    declared = target.job.spec.checkpoint
    if declared is None or declared.deletion_policy != "Delete":
        return ()
    return tuple(
        Delete(Ref("v1", kind, observed.resource.ref.namespace, name), "the spec says so", found["metadata"].get("uid"))
        for (kind, name), found in observed.objects.items()
        if kind == "PersistentVolumeClaim"
    )


def _told(situation: Situation, steps: tuple[Action, ...], look_again: float | None) -> Plan:
    """The plan with its status, written where it differs, and a warning for each thing that got worse."""
    resource = situation.observed.resource
    new = status.make(situation)
    write = (WriteStatus(resource.ref, new),) if new != resource.status else ()
    told = alerting.events(
        situation.observed, new.get("alerts") or []
    )  # before the status: it says that they were told
    return Plan((*steps, *told, *write, *_warnings(situation, new)), new, situation.verdict, look_again)


BAD = {
    "Stalled": "True",
    "LagHealthy": "False",
    "StragglersHealthy": "False",
    "TopicsReady": "False",
}


def _warnings(situation: Situation, new: Manifest) -> Iterator[Warn]:
    """Only what is bad, and only when its reason is new: an event is for a person, not a log."""
    resource = situation.observed.resource
    before = {one["type"]: (one["status"], one["reason"]) for one in resource.status.get("conditions") or []}
    refusals = ("InvalidSpec", "NeedsNewState")
    for one in new["conditions"]:
        is_bad = one["status"] == BAD.get(one["type"]) or (one["type"] == "Progressing" and one["reason"] in refusals)
        if is_bad and before.get(one["type"]) != (one["status"], one["reason"]):
            yield Warn(resource.ref, resource.uid, one["reason"], one["message"], format_time(situation.observed.now))


def _finalizers(observed: Observed, *names: str) -> Finalizers:
    return Finalizers(observed.resource.ref, observed.resource.uid, names)


def _pod_ref(observed: Observed, name: str) -> Ref:
    return Ref("v1", "Pod", observed.resource.ref.namespace, name)


def _look_again(situation: Situation, settings: Settings) -> float | None:
    """Soon while something runs or fails; at the retry's time while the job is held; else only when woken."""
    if situation.record.given_up or situation.suspended:
        return None
    retry = situation.record.retry
    wait = (retry - situation.observed.now).total_seconds() if retry is not None else settings.pace.look
    return max(0.1, min(wait, settings.pace.look)) if wait > 0 else settings.pace.look
