"""The side topics: every record that belongs there, once, with its own bytes and the headers of the contract."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.oracle.oracle import SideRecord
from tests.oracle.reading import Delivered
from tests.oracle.times import format_time, read_time

Origin = tuple[str, str, str]
_WHOLE = ("partition", "offset", "late_by_ms")


def side_differences(name: str, expected: Sequence[SideRecord], found: Sequence[Delivered]) -> Iterator[str]:
    """`name` is what the topic is called in the sentences."""
    delivered: defaultdict[Origin, list[Delivered]] = defaultdict(list)
    for record in found:
        delivered[_origin(record.headers)].append(record)
    for side in expected:
        headers = tuple((header, _text(header, value)) for header, value in side.headers)
        yield from _one(f"{name} record of {_shown(headers)}", side, headers, delivered.pop(_origin(headers), []))
    for origin, records in delivered.items():
        yield f"{name}: {len(records)} records that should not be there, from {' '.join(origin)}"


def _one(
    what: str, side: SideRecord, headers: tuple[tuple[str, str], ...], found: Sequence[Delivered]
) -> Iterator[str]:
    if len(found) != 1:
        yield f"{what} is there {len(found)} times" if found else f"{what} is missing"
    for record in found:
        if (record.key, record.value) != (side.key, side.value):
            yield f"{what} has key and value {(record.key, record.value)}, not {(side.key, side.value)}"
        told = sorted((header, _normal(header, value)) for header, value in record.headers)
        if told != sorted(headers):
            yield f"{what} has the headers {_shown(told)}"


def _text(name: str, value: str | int) -> str:
    return format_time(int(value)) if name == "window_end" else str(value)


def _normal(name: str, value: bytes | None) -> str:
    """The header's text; a time and a number in one spelling only, so that another spelling of the same is equal."""
    text = (value or b"").decode(errors="replace")
    try:
        if name == "window_end":
            return format_time(read_time(text))
        return str(int(text)) if name in _WHOLE else text
    except ValueError:
        return text


def _origin(headers: Sequence[tuple[str, str | bytes | None]]) -> Origin:
    told = {name: value.decode(errors="replace") if isinstance(value, bytes) else value for name, value in headers}
    return told.get("topic") or "?", told.get("partition") or "?", told.get("offset") or "?"


def _shown(headers: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in headers)
