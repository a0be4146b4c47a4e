"""Bytes to declared fields: what counts as a JSON object of the schema. Knows nothing of time's passing."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from tests.oracle.model import FieldType
from tests.oracle.times import parse_time

Value = str | int | float | bool | None
Fields = dict[str, Value]

_LIMITS = {"long": 2**63, "int": 2**31}


class UnparsableError(ValueError):
    """The value is not a JSON object of the declared schema."""


def parse_fields(value: bytes | None, schema: Mapping[str, FieldType]) -> Fields:
    """Every declared field, null where absent; timestamps in microseconds. What is not declared is ignored."""
    found = _load(value)
    if not isinstance(found, dict):
        raise UnparsableError("not a JSON object")
    return {name: _fit(found.get(name), kind) for name, kind in schema.items()}


def _load(value: bytes | None) -> Any:
    if value is None:
        raise UnparsableError("no value")
    try:
        return json.loads(value.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as broken:
        raise UnparsableError(str(broken)) from broken


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _fit(value: Any, kind: FieldType) -> Value:
    if value is None:
        return None
    fitted = _FITS[kind](value, kind)
    if fitted is None:
        raise UnparsableError(f"{value!r} is not a {kind}")
    return fitted


def _text(value: Any, _: str) -> Value:
    return value if isinstance(value, str) else None


def _flag(value: Any, _: str) -> Value:
    return value if isinstance(value, bool) else None


def _whole(value: Any, kind: str) -> Value:
    # bool is an int to Python, not to JSON.
    fits = isinstance(value, int) and not isinstance(value, bool) and -_LIMITS[kind] <= value < _LIMITS[kind]
    return int(value) if fits else None


def _real(value: Any, _: str) -> Value:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _moment(value: Any, _: str) -> Value:
    try:
        return parse_time(value) if isinstance(value, str) else None
    except ValueError:
        return None


_FITS = {"string": _text, "boolean": _flag, "long": _whole, "int": _whole, "double": _real, "timestamp": _moment}
