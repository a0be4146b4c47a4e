"""Microseconds since 1970 to the text that people read, and back from durations."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(micros: int) -> str:
    """ISO-8601 in UTC, to the microsecond."""
    return (EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)
