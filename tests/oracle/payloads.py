"""The bytes of the events in made-up logs: valid ones, and one for each way of being malformed."""

import json
import random
from collections.abc import Callable
from typing import Any

from tests.oracle.times import SECOND, format_time

COLUMNS = "device string, kind string, amount long, price double, ok boolean, at timestamp"
CLOCK_COLUMNS = "sent timestamp, received timestamp"
KINDS = ("buy", "look", "return", "ü-kind", None)


def valid_fields(rng: random.Random, device: str | None, time: int, received: int | None) -> dict[str, Any]:
    """Fields of a valid event; `received` asks for three clocks, with a device clock that is off by up to hours."""
    skew = rng.choice((0, 1, -37, 3_600, -7_200)) * SECOND
    travel = rng.randrange(0, 3) * SECOND // 4
    fields: dict[str, Any] = {
        "device": device,
        "kind": rng.choice(KINDS),
        "amount": rng.choice((None, rng.randrange(-50, 1_000))),
        "price": rng.randrange(-20, 400) / 2,
        "ok": rng.random() < 0.5,
        "at": format_time(time if received is None else time - travel + skew),
    }
    if received is not None:
        # Event time = at + received - sent, so the device's skew falls out and the travel time comes in.
        fields |= {"sent": format_time(received - travel + skew), "received": format_time(received)}
    return fields


def encode(rng: random.Random, fields: dict[str, Any]) -> bytes:
    """JSON in one of several spellings; a null is sometimes left out, and an undeclared field comes along."""
    kept = {name: value for name, value in fields.items() if value is not None or rng.random() < 0.5}
    if rng.random() < 0.1:
        kept["undeclared"] = {"nested": [1, "x"]}
    return json.dumps(kept, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, None, 1))).encode()


def _changed(**changes: Any) -> Callable[[dict[str, Any]], bytes]:
    return lambda fields: json.dumps({**fields, **changes}).encode()


def _without(name: str) -> Callable[[dict[str, Any]], bytes]:
    return lambda fields: json.dumps({key: value for key, value in fields.items() if key != name}).encode()


def _fixed(value: bytes | None) -> Callable[[dict[str, Any]], bytes | None]:
    return lambda fields: value


# Name of the defect -> (the reason it must be given, how to make it out of valid fields).
DEFECTS: dict[str, tuple[str, Callable[[dict[str, Any]], bytes | None]]] = {
    "truncated": ("unparsable", lambda fields: json.dumps(fields).encode()[:-3]),
    "trailing": ("unparsable", lambda fields: json.dumps(fields).encode() + b" x"),
    "empty": ("unparsable", _fixed(b"")),
    "tombstone": ("unparsable", _fixed(None)),
    "not-utf8": ("unparsable", lambda fields: b'{"device": "\xff\xfe", ' + json.dumps(fields).encode()[1:]),
    "array": ("unparsable", lambda fields: json.dumps([fields]).encode()),
    "number": ("unparsable", _fixed(b"17")),
    "text": ("unparsable", _fixed(b'"hello"')),
    "null": ("unparsable", _fixed(b"null")),
    "text-for-long": ("unparsable", _changed(amount="many")),
    "digits-for-long": ("unparsable", _changed(amount="12")),
    "fraction-for-long": ("unparsable", _changed(amount=1.5)),
    "huge-for-long": ("unparsable", _changed(amount=2**63)),
    "text-for-double": ("unparsable", _changed(price="cheap")),
    "number-for-boolean": ("unparsable", _changed(ok=1)),
    "number-for-string": ("unparsable", _changed(device=5)),
    "object-for-string": ("unparsable", _changed(kind={"a": 1})),
    "text-for-time": ("unparsable", _changed(at="yesterday")),
    "no-such-time": ("unparsable", _changed(at="2026-13-45T00:00:00Z")),
    "number-for-time": ("unparsable", _changed(at=1_767_225_600)),
    "time-null": ("no-event-time", _changed(at=None)),
    "time-absent": ("no-event-time", _without("at")),
    "empty-object": ("no-event-time", _fixed(b"{}")),
}
CLOCK_DEFECTS: dict[str, tuple[str, Callable[[dict[str, Any]], bytes | None]]] = {
    "sent-absent": ("no-event-time", _without("sent")),
    "received-null": ("no-event-time", _changed(received=None)),
}
