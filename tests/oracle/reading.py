"""What was read from Kafka, turned into plain values, or into a sentence that says why that cannot be done."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.oracle.aggregates import result_type
from tests.oracle.model import FieldType, Job, Window
from tests.oracle.times import format_time, read_time

Key = tuple[Any, ...]
Row = dict[str, Any]
WINDOW_COLUMNS: dict[str, FieldType] = {"window_start": "timestamp", "window_end": "timestamp"}

_JSON_TYPES: dict[FieldType, tuple[type[Any], ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "long": (int,),
    "int": (int,),
    "double": (int, float),
}


class UnreadableError(ValueError):
    """An output record that is not what the contract says, in a sentence."""


@dataclass(frozen=True)
class Delivered:
    """One record of a topic that the job wrote, as a reader of committed records gets it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int
    offset: int
    timestamp: int = 0  # microseconds


@dataclass(frozen=True)
class Publication:
    """One record of the output topic. A row of None withdraws the key; `retracts` is None where there is no field."""

    key: Key
    row: Row | None
    retracts: tuple[Row, ...] | None = None


def read_publications(job: Job, records: Iterable[Delivered]) -> tuple[dict[Key, list[Publication]], list[str]]:
    """The publications of each key in the order of the log, and sentences about what has no place in such an order."""
    published: defaultdict[Key, list[Publication]] = defaultdict(list)
    partitions: dict[Key, int] = {}
    bad: list[str] = []
    for record in sorted(records, key=lambda one: (one.partition, one.offset)):
        try:
            publication = read_publication(job, record)
        except UnreadableError as reason:
            bad.append(f"output {record.partition}/{record.offset} cannot be read: {reason}")
            continue
        published[publication.key].append(publication)
        if partitions.setdefault(publication.key, record.partition) != record.partition:
            bad.append(f"{show_key(job, publication.key)} is in several partitions: its order is lost")
    return dict(published), bad


def read_publication(job: Job, record: Delivered) -> Publication:
    """Key and value of a result; raises UnreadableError."""
    key = read_key(job, record.key)
    if record.value is None:
        return Publication(key, None)
    found = _object(record.value, "value")
    retracts = _retracts(job, found.pop("retracts")) if "retracts" in found else None
    row = _read(found, columns(job), "value")
    if tuple(row[column] for column in job.sink_key) != key:
        raise UnreadableError(f"the key {show_key(job, key)} is not the one of its value {show(row)}")
    return Publication(key, row, retracts)


def read_key(job: Job, key: bytes | None) -> Key:
    types = columns(job)
    row = _read(_object(key, "key"), {column: types[column] for column in job.sink_key}, "key")
    return tuple(row[column] for column in job.sink_key)


def columns(job: Job) -> dict[str, FieldType]:
    """The columns of a result, without `retracts`."""
    window = _window(job)
    return WINDOW_COLUMNS | {column: job.schema[column] for column in window.by} | _measured(job)


def without_by(job: Job, row: Row) -> Row:
    """A result as it stands in a list of what is retracted."""
    return {name: row[name] for name in (*WINDOW_COLUMNS, *_measured(job))}


def show(row: Row | None) -> str:
    return "nothing" if row is None else ", ".join(f"{name}={_shown(name, value)}" for name, value in row.items())


def show_key(job: Job, key: Key) -> str:
    return show(dict(zip(job.sink_key, key, strict=True)))


def _window(job: Job) -> Window:
    if job.window is None:
        raise ValueError("only jobs with a window have results")
    return job.window


def _measured(job: Job) -> dict[str, FieldType]:
    types = {name: result_type(expression, job.schema) for name, expression in _window(job).aggregates.items()}
    return types | ({"revision": "long"} if job.policy == "correct" else {})


def _retracts(job: Job, found: Any) -> tuple[Row, ...]:
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise UnreadableError(f"retracts is not a list of objects but {found!r}")
    return tuple(_read(entry, WINDOW_COLUMNS | _measured(job), "an entry of retracts") for entry in found)


def _object(text: bytes | None, what: str) -> dict[str, Any]:
    try:
        found = json.loads((text or b"").decode())
    except ValueError as broken:
        raise UnreadableError(f"the {what} {text!r} is not JSON") from broken
    if not isinstance(found, dict):
        raise UnreadableError(f"the {what} {text!r} is not a JSON object")
    return found


def _read(found: Mapping[str, Any], types: Mapping[str, FieldType], what: str) -> Row:
    """Exactly these columns; one that is left out is null."""
    if unknown := sorted(found.keys() - types.keys()):
        raise UnreadableError(f"the {what} has fields that nobody asked for: {', '.join(unknown)}")
    return {name: _value(name, found.get(name), kind) for name, kind in types.items()}


def _value(name: str, value: Any, kind: FieldType) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return [_value(name, element, kind) for element in value]
    if kind == "timestamp":
        return _time(name, value)
    # bool is an int to Python, not to JSON.
    if not isinstance(value, _JSON_TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        raise UnreadableError(f"{name} is {value!r}, which is not a {kind}")
    return float(value) if kind == "double" else value


def _time(name: str, value: Any) -> int:
    try:
        return read_time(value)
    except ValueError as bad:
        raise UnreadableError(f"{name} is {value!r}, which is not an ISO-8601 time") from bad


def _shown(name: str, value: Any) -> str:
    return format_time(value) if name in WINDOW_COLUMNS and isinstance(value, int) else repr(value)
