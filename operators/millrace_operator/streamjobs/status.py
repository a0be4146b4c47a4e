"""What the resource's status says: one state, the conditions, the figures, a short history.

Made from what was seen and what was decided; nothing in here decides.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from millrace import units
from millrace_operator.actions import Manifest
from millrace_operator.desired.target import JOB_LABEL, ROLE_LABEL, Target
from millrace_operator.streamjobs import alerting, conditions, failures, health
from millrace_operator.streamjobs.accept import Verdict
from millrace_operator.streamjobs.causes import Cause, is_moving
from millrace_operator.streamjobs.conditions import Condition
from millrace_operator.streamjobs.failures import Record
from millrace_operator.streamjobs.state import Observed, format_time

STATES = (
    "Starting",
    "Running",
    "Upgrading",
    "Stalled",
    "Restarting",
    "Failed",
    "Completed",
    "Suspended",
    "Stopping",
    "Paused",
    "Invalid",
)
HISTORY = 10
FIGURES = ("progress", "lag", "lagSeconds", "lagRecords", "lagVerdict", "dropped")
"""Parts that change all the time: on their own they are written only now and then."""


@dataclass(frozen=True)
class Situation:
    """What was found out about a job on the way to its plan."""

    observed: Observed
    verdict: Verdict
    record: Record
    cause: Cause | None = None
    suspended: bool = False
    paused: bool = False


def make(situation: Situation) -> Manifest:
    observed, before = situation.observed, situation.observed.resource.status
    now, generation = format_time(observed.now), observed.resource.generation
    state = state_of(situation)
    status: Manifest = {
        "observedGeneration": generation,
        "state": state,
        "conditions": conditions.dated(_conditions(situation, state), before.get("conditions") or [], generation, now),
        "restarts": situation.record.total,
        "failures": failures.to_status(situation.record),
        "executors": sum(pod.running_since is not None for pod in observed.executors),
        "selector": f"{JOB_LABEL}={observed.resource.ref.name},{ROLE_LABEL}=executor",
        **_version(situation.verdict.target),
        **_figures(situation),
    }
    status["history"] = _history(before, state, situation, now)
    status |= {"alerts": alerts} if (alerts := alerting.history(observed)) else {}
    return status


def state_of(situation: Situation) -> str:
    target, driver, record = situation.verdict.target, situation.observed.driver, situation.record
    if situation.paused:
        return "Paused"
    if target is None:
        return "Invalid"
    if situation.suspended or situation.observed.resource.deleting:
        return "Stopping" if driver is not None else "Suspended"
    if record.given_up:
        return "Completed" if record.code == 0 else "Failed"
    if record.holds(situation.observed.now):
        return "Restarting"
    if situation.cause is not None:
        return "Stalled"
    if is_moving(situation.observed, situation.record):
        return "Running"
    return "Upgrading" if driver is not None and driver.revision not in (None, target.revision) else "Starting"


def _conditions(situation: Situation, state: str) -> list[Condition]:
    target = situation.verdict.target
    found = [_ready(situation, state), _progressing(situation, state), _stalled(situation)]
    return found + (health.goals(situation.observed, target) if target is not None else [])


def _ready(situation: Situation, state: str) -> Condition:
    progress = situation.observed.progress
    if is_moving(situation.observed, situation.record) and situation.cause is None and progress is not None:
        waits = progress.batch is None
        return Condition("Ready", "True", "WaitingForData" if waits else "Moving", _moving_message(situation))
    if situation.cause is not None:
        return Condition("Ready", "False", situation.cause.reason, situation.cause.message)
    return Condition("Ready", "False", state, _refused(situation))


def _moving_message(situation: Situation) -> str:
    progress = situation.observed.progress
    waits = progress is not None and progress.batch is None
    return _refused(situation) or ("There was nothing to read yet." if waits else "Batches advance.")


def _refused(situation: Situation) -> str:
    refusal = situation.verdict.refusal
    return f"The last edit is not in effect: {refusal.message}" if refusal is not None else ""


def _progressing(situation: Situation, state: str) -> Condition:
    refusal = situation.verdict.refusal
    if refusal is not None:
        return Condition("Progressing", "False", refusal.reason, refusal.message)
    if state in ("Starting", "Upgrading", "Stopping", "Restarting"):
        return Condition("Progressing", "True", state, _waiting_for(situation, state))
    return Condition("Progressing", "False", state if state != "Running" else "Settled")


def _waiting_for(situation: Situation, state: str) -> str:
    record = situation.record
    if state == "Restarting" and record.retry is not None:
        return f"Failed {record.row} times in a row; next start at {format_time(record.retry)}."
    return {
        "Stopping": "The driver finishes its batch.",
        "Upgrading": "The driver finishes its batch, then the new version goes on.",
    }.get(state, "")


def _stalled(situation: Situation) -> Condition:
    if situation.cause is None:
        return Condition("Stalled", "False", "NothingWrong")
    return Condition("Stalled", "True", situation.cause.reason, situation.cause.message)


def _version(target: Target | None) -> Manifest:
    return {} if target is None else {"revision": target.revision, "epoch": target.epoch}


def _figures(situation: Situation) -> Manifest:
    progress, lag = situation.observed.progress, situation.observed.lag
    figures: dict[str, Any] = {}
    if progress is not None:
        told = {"batch": progress.batch, "read": progress.read, "watermark": progress.watermark}
        figures["progress"] = {key: value for key, value in told.items() if value is not None}
        figures["dropped"] = progress.dropped
    if lag is not None:
        figures |= {"lag": _age(lag.seconds), "lagSeconds": round(lag.seconds, 1), "lagRecords": lag.records}
        if lag.verdict:
            figures["lagVerdict"] = lag.verdict
    kept = {
        key: situation.observed.resource.status[key] for key in FIGURES if key in situation.observed.resource.status
    }
    return kept | figures


def _age(seconds: float) -> str:
    """To the second: nobody reads more of it in a column."""
    return units.format_duration(timedelta(seconds=round(seconds)))


def _history(before: Manifest, state: str, situation: Situation, now: str) -> list[Manifest]:
    """One line per change of state, the latest last."""
    past = list(before.get("history") or [])
    if before.get("state") == state and past:
        return past
    why = f"{situation.cause.reason}: {situation.cause.message}"[:200] if situation.cause is not None else ""
    return [*past, {"at": now, "state": state, **({"why": why} if why else {})}][-HISTORY:]


def only_figures_differ(one: Manifest, other: Manifest) -> bool:
    """Whether two statuses tell the same story with other numbers."""
    return _story(one) == _story(other)


def _story(status: Manifest) -> Manifest:
    story = {key: value for key, value in status.items() if key not in FIGURES}
    told = [{key: value for key, value in one.items() if key != "message"} for one in status.get("conditions") or []]
    return story | {"conditions": told}
