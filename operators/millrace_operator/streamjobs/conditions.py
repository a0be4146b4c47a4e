"""Conditions as Kubernetes knows them: made, compared and carried on with the time of their last change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from millrace_operator.actions import Manifest

Truth = Literal["True", "False", "Unknown"]
MESSAGE_LENGTH = 1024


@dataclass(frozen=True)
class Condition:
    type: str
    status: Truth
    reason: str
    message: str = ""


def dated(conditions: Sequence[Condition], before: Sequence[Manifest], generation: int, now: str) -> list[Manifest]:
    """As the status holds them: a condition whose status stays keeps its time."""
    old = {one["type"]: one for one in before}
    return [_dated(one, old.get(one.type), generation, now) for one in conditions]


def _dated(condition: Condition, old: Manifest | None, generation: int, now: str) -> Manifest:
    kept = old is not None and old.get("status") == condition.status
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message[:MESSAGE_LENGTH],
        "lastTransitionTime": old["lastTransitionTime"] if kept and old is not None else now,
        "observedGeneration": generation,
    }


def reason_of(conditions: Sequence[Manifest], kind: str) -> tuple[str, str]:
    """Status and reason of one condition; Unknown where it is not there."""
    found = next((one for one in conditions if one["type"] == kind), {})
    return found.get("status", "Unknown"), found.get("reason", "")
