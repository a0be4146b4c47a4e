"""Times and durations as whole microseconds. Nothing here knows of events or windows."""

import re
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = 1_000
SECOND = 1_000_000

_UNITS = {"us": 1, "ms": MILLISECOND, "s": SECOND, "m": 60 * SECOND, "h": 3_600 * SECOND, "d": 86_400 * SECOND}
_DURATION = re.compile(r"(\d+)(us|ms|s|m|h|d)")
_ISO = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)T(?P<clock>\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d\d:\d\d)?",
    re.ASCII,
)


def parse_duration(text: str) -> int:
    """'1m30s' and the like in microseconds."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"not a duration: {text!r}")
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


def parse_time(text: str) -> int:
    """An ISO-8601 date and time in microseconds; without a zone it is UTC. ValueError for anything else."""
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError(f"not an ISO-8601 time: {text!r}")
    zone = match["zone"] or "Z"
    moment = datetime.fromisoformat(f"{match['date']}T{match['clock']}{'+00:00' if zone == 'Z' else zone}")
    # Digits beyond the microsecond are cut off, not rounded: rounding could move an event over a border.
    return (moment - EPOCH) // timedelta(microseconds=1) + int((match["fraction"] or "0").ljust(6, "0")[:6])


def read_time(value: object) -> int:
    """A time as a job may print it: like parse_time, but a blank for the T is fine."""
    if not isinstance(value, str):
        raise ValueError(f"not a time: {value!r}")
    return parse_time(value.strip().replace(" ", "T", 1))


def format_time(micros: int) -> str:
    """ISO-8601 in UTC, three digits where they are enough and six where they are not."""
    moment = EPOCH + timedelta(microseconds=micros)
    precision = "milliseconds" if micros % MILLISECOND == 0 else "microseconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")
