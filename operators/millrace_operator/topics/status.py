"""What a Topic's status says, and the actions on its resource that follow from an outcome."""

from collections.abc import Iterator
from datetime import datetime

from millrace_operator.actions import Action, Finalizers, Manifest, Warn, WriteStatus
from millrace_operator.streamjobs.conditions import Condition, dated, reason_of
from millrace_operator.streamjobs.state import format_time
from millrace_operator.topics.plan import Outcome
from millrace_operator.topics.state import FINALIZER

PASSING = frozenset(["Creating", "Changing", "Deleting", "Paused"])
"""Reasons for not being ready that are nobody's fault."""


def make(outcome: Outcome, now: datetime) -> Manifest:
    declared = outcome.declared
    ready = Condition("Ready", "True" if outcome.ready else "False", outcome.reason, outcome.message)
    before = declared.status.get("conditions") or []
    status: Manifest = {
        "observedGeneration": declared.generation,
        "topicName": declared.topic,
        "conditions": dated([ready], before, declared.generation, format_time(now)),
    }
    if outcome.seen is not None:
        status |= {"partitions": outcome.seen.partitions, "replicas": outcome.seen.replicas}
    return status


def actions(outcome: Outcome, now: datetime) -> Iterator[Action]:
    """Only what differs from what the resource says already."""
    declared = outcome.declared
    if declared.deleting and outcome.release:
        if declared.held:
            yield Finalizers(declared.ref, declared.uid, ())
        return
    if not declared.deleting and declared.held != declared.delete_with_resource:
        yield Finalizers(declared.ref, declared.uid, (FINALIZER,) if declared.delete_with_resource else ())
    status = make(outcome, now)
    if status != declared.status:
        yield WriteStatus(declared.ref, status)
        yield from _warning(outcome, now)


def _warning(outcome: Outcome, now: datetime) -> Iterator[Warn]:
    declared = outcome.declared
    before = reason_of(declared.status.get("conditions") or [], "Ready")
    if not outcome.ready and outcome.reason not in PASSING and before[1] != outcome.reason:
        yield Warn(declared.ref, declared.uid, outcome.reason, outcome.message, format_time(now))
