"""The retention guard: a shorter retention must not delete what a job has not read yet."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from millrace_operator.topics.state import CLEANUP, FORCE, RETENTION_BYTES, RETENTION_TIME, Reader, Seen

KEYS = (RETENTION_TIME, RETENTION_BYTES, CLEANUP)
ENDLESS = float("inf")
T = TypeVar("T")


def shortens(put: Mapping[str, str], reset: tuple[str, ...], seen: Seen) -> bool:
    """Whether a change may make Kafka delete records that it keeps now."""
    return any(_is_shorter(key, put, reset, seen) for key in KEYS)


def objection(put: Mapping[str, str], reset: tuple[str, ...], seen: Seen, readers: tuple[Reader, ...]) -> str | None:
    """The sentence for a change that would delete unread records; None where none would be."""
    keep_seconds = _limit(_after(RETENTION_TIME, put, reset, seen)) / 1000
    by_size = _is_shorter(RETENTION_BYTES, put, reset, seen) or _is_shorter(CLEANUP, put, reset, seen)
    for reader in readers:
        if reader.records and (by_size or reader.seconds > keep_seconds):
            return (
                f"Job {reader.job} has {reader.records} unread records, the oldest {reader.seconds:.0f} s old, and the "
                f"new retention could delete some; the old one stays until they are read. Annotate {FORCE}=true to "
                "lose them."
            )
    return None


def without_retention(put: Mapping[str, str], reset: tuple[str, ...], topic: str, make: Callable[..., T]) -> T:
    """The rest of a change, which can be done all the same."""
    return make(
        topic, {key: value for key, value in put.items() if key not in KEYS}, tuple(k for k in reset if k not in KEYS)
    )


def _is_shorter(key: str, put: Mapping[str, str], reset: tuple[str, ...], seen: Seen) -> bool:
    before, after = seen.value(key), _after(key, put, reset, seen)
    if before == after:
        return False
    if key == CLEANUP:
        return "delete" in (after or "") and "delete" not in (before or "")
    return _limit(after) < _limit(before)


def _after(key: str, put: Mapping[str, str], reset: tuple[str, ...], seen: Seen) -> str | None:
    if key in put:
        return put[key]
    # a default that the broker does not tell may be anything, so it counts as the shortest
    return seen.defaults.get(key, "0") if key in reset else seen.value(key)


def _limit(text: Any) -> float:
    """Kafka says 'no limit' with -1."""
    return float(text) if text is not None and float(text) >= 0 else ENDLESS
