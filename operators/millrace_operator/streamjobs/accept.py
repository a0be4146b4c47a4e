"""Which version of a job should run: the one that was edited last, or, where that is wrong, the last good one.

The last good version is what the job's ConfigMap holds. What a change does comes from the declaration of its field.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from millrace import naming
from millrace.resources import StreamJob
from millrace.resources.changes import Change, compare, worst
from millrace.resources.metadata import API_VERSION
from millrace.resources.reading import SpecError, parse_object
from millrace_operator.actions import Manifest
from millrace_operator.desired.target import CLAIM, EPOCH, RESTART, REVISION, SPEC_FILE, Target
from millrace_operator.streamjobs.state import Objects, Resource

INVALID = "InvalidSpec"
NEEDS_NEW_STATE = "NeedsNewState"


@dataclass(frozen=True)
class Refusal:
    """Why the last edit is not what runs."""

    reason: str
    message: str


@dataclass(frozen=True)
class Verdict:
    """The version to run (None: there was never a good one), and what was found on the way."""

    target: Target | None
    changes: tuple[Change, ...] = ()
    refusal: Refusal | None = None
    first: bool = False


def judge(resource: Resource, objects: Objects) -> Verdict:
    good = accepted(resource, objects)
    try:
        job = _parsed(resource, resource.spec)
    except SpecError as error:
        return Verdict(good, refusal=Refusal(INVALID, _without_title(error)))
    if good is None:
        return Verdict(_first(resource, job, objects), first=True)
    return _changed(good, replace(good, job=job, spec=resource.spec))


def accepted(resource: Resource, objects: Objects) -> Target | None:
    """The last good version, from the ConfigMap."""
    found = objects.get(("ConfigMap", naming.config_map(resource.ref.name)))
    if found is None:
        return None
    try:
        spec = json.loads(found["data"][SPEC_FILE])["spec"]
        job = _parsed(resource, spec)
    except (SpecError, ValueError, KeyError, TypeError):
        return None  # written by nobody of ours, or by a version whose specs we no longer take
    revision, epoch, claim = (_number(found, key) for key in (REVISION, EPOCH, CLAIM))
    return Target(job, spec, revision, epoch, claim, resource.annotations.get(RESTART, ""))


def _first(resource: Resource, job: StreamJob, objects: Objects) -> Target:
    """A job that is made again finds its volume, and one whose ConfigMap is gone its driver."""
    claim = objects.get(("PersistentVolumeClaim", naming.checkpoint_claim(resource.ref.name)))
    driver = objects.get(("StatefulSet", naming.driver(resource.ref.name)))
    revision = _number(driver["spec"]["template"], REVISION) if driver else 1
    epoch = _number(claim, EPOCH) if claim else 1
    return Target(job, resource.spec, revision, epoch, restart=resource.annotations.get(RESTART, ""))


def _changed(good: Target, new: Target) -> Verdict:
    if good.spec == new.spec:
        return Verdict(new)
    changes = compare(good.job.spec, new.job.spec)
    effect = worst(changes)
    if effect == "new-state":
        return _with_new_state(good, new, changes)
    return Verdict(replace(new, revision=good.revision + 1) if effect == "restart" else new, changes)


def _with_new_state(good: Target, new: Target, changes: tuple[Change, ...]) -> Verdict:
    strict = [change for change in changes if change.effect == "new-state"]
    if new.job.spec.upgrade.mode != "restart-empty":
        fields = ", ".join(change.path for change in strict)
        message = (
            f"A change of {fields} does not fit the state that the job has; the version before runs on. "
            "Put it back, or set upgrade.mode: restart-empty to start with new state, or make a job of another name."
        )
        return Verdict(good, changes, Refusal(NEEDS_NEW_STATE, message))
    other_volume = any(change.path.startswith("checkpoint") for change in strict)
    return Verdict(
        replace(new, revision=good.revision + 1, epoch=good.epoch + 1, claim=good.claim + other_volume), changes
    )


def _parsed(resource: Resource, spec: Mapping[str, Any]) -> StreamJob:
    return _parse(resource.ref.namespace, resource.ref.name, resource.uid, json.dumps(spec, sort_keys=True))


@lru_cache(maxsize=4096)
def _parse(namespace: str, name: str, uid: str, spec: str) -> StreamJob:
    """Parsing is most of the work of a look at which nothing has changed, so it is done once per version."""
    metadata = {"name": name, "namespace": namespace, "uid": uid}
    body = {"apiVersion": API_VERSION, "kind": "StreamJob", "metadata": metadata, "spec": json.loads(spec)}
    job = parse_object(body)
    if not isinstance(job, StreamJob):
        raise TypeError(f"{name} is no StreamJob")
    return job


def _number(manifest: Manifest, key: str) -> int:
    text = (manifest["metadata"].get("annotations") or {}).get(key, "")
    return int(text) if text.isdigit() else 1


def _without_title(error: SpecError) -> str:
    """The API server's own object needs no 'streamjob/name:' before each line."""
    return "; ".join(line.split(": ", 1)[-1] for line in error.lines)
