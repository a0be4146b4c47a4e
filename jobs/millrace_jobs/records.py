"""Bytes of a record to the declared columns: strict, so that what a reader would misread is refused instead.

Knows JSON and types. Knows nothing of time, windows or Kafka.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import attrgetter
from typing import Annotated, Any, TypedDict

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bools = NDArray[np.bool_]

# Everything that a decoder can raise about one value. TypeError is what it says of a record without a value.
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, OverflowError)
_PLAIN: tuple[tuple[Callable[[pa.DataType], bool], Any], ...] = (
    (pa.types.is_string, str),
    (pa.types.is_boolean, bool),
    (pa.types.is_floating, float),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_date, date),
    (pa.types.is_timestamp, datetime),
    (pa.types.is_binary, bytes),
)


@dataclass(frozen=True)
class Decoded:
    """The columns of some values, with nulls in the rows that are broken."""

    columns: list[pa.Array]
    broken: Bools


class Decoder:
    """Reads JSON objects of one schema. Made once per task: building it costs more than decoding a thousand values."""

    def __init__(self, schema: pa.Schema) -> None:
        self._types = [column.type for column in schema]
        fields = [(f"c{index}", python_type(column.type) | None, None) for index, column in enumerate(schema)]
        names = {f"c{index}": column.name for index, column in enumerate(schema)}
        event = msgspec.defstruct("Event", fields, rename=names, gc=False)
        self._empty = event()
        self._decode = msgspec.json.Decoder(event).decode
        self._getters = [attrgetter(name) for name in names]

    def decode(self, values: pa.Array) -> Decoded:
        rows, broken = self._rows(values)
        columns = [
            _column([get(row) for row in rows], kind, broken)
            for get, kind in zip(self._getters, self._types, strict=True)
        ]
        return Decoded(columns, broken)

    def _rows(self, values: pa.Array) -> tuple[list[Any], Bools]:
        broken = np.zeros(len(values), dtype=np.bool_)
        texts, decode = values.to_pylist(), self._decode
        for index in _not_utf8(values, texts):
            texts[index] = None
        rows = []
        for index, text in enumerate(texts):
            try:
                rows.append(decode(text))
            except _BROKEN:
                rows.append(self._empty)
                broken[index] = True
        return rows, broken


def python_type(kind: pa.DataType) -> Any:
    """The type that a JSON value must have to become this Arrow type."""
    for is_kind, plain in _PLAIN:
        if is_kind(kind):
            return plain
    if pa.types.is_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]
    if pa.types.is_map(kind):
        return dict[str, python_type(kind.item_type) | None]  # type: ignore[misc]  # made at run time
    if pa.types.is_list(kind):
        return list[python_type(kind.value_type) | None]  # type: ignore[misc]
    if pa.types.is_struct(kind):
        inner = {kind.field(i).name: python_type(kind.field(i).type) | None for i in range(kind.num_fields)}
        return TypedDict("Inner", inner, total=False)  # type: ignore[operator]
    raise ValueError(f"columns of type {kind} cannot be read from JSON")


def _not_utf8(values: pa.Array, texts: Sequence[bytes | None]) -> list[int]:
    """Values with bytes that are no text. The decoder looks only at declared fields, so it would miss some."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return [index for index, text in enumerate(texts) if text is not None and not _is_utf8(text)]
    return []


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _column(values: list[Any], kind: pa.DataType, broken: Bools) -> pa.Array:
    """One column; a value that the type cannot hold (digits of a decimal, a year) makes its row broken."""
    if pa.types.is_timestamp(kind):
        values = [value if value is None or value.tzinfo else value.replace(tzinfo=UTC) for value in values]
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError):
        for index, value in enumerate(values):
            if not _fits(value, kind):
                values[index], broken[index] = None, True
        return pa.array(values, kind)


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowException, OverflowError):
        return False
    return True
