"""Reading values: what is no JSON object of the schema is broken, and only that row."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from millrace_jobs.records import Decoder
from tests.oracle.parsing import UnparsableError, parse_fields
from tests.oracle.payloads import CLOCK_DEFECTS, COLUMNS, DEFECTS

pytestmark = pytest.mark.unit

MOMENT = pa.timestamp("us", tz="UTC")
PLAIN = pa.schema(
    [
        ("device", pa.string()),
        ("kind", pa.string()),
        ("amount", pa.int64()),
        ("price", pa.float64()),
        ("ok", pa.bool_()),
        ("at", MOMENT),
    ]
)
GOOD = {"device": "d1", "kind": "buy", "amount": 3, "price": 2.5, "ok": True, "at": "2026-01-01T00:00:00.5Z"}


def decode(schema: pa.Schema, *values: Any) -> tuple[list[dict[str, Any]], list[bool]]:
    texts = [value if value is None or isinstance(value, bytes) else json.dumps(value).encode() for value in values]
    decoded = Decoder(schema).decode(pa.array(texts, pa.binary()))
    rows = pa.RecordBatch.from_arrays(decoded.columns, schema=schema).to_pylist()
    return rows, decoded.broken.tolist()


def test_a_good_value_becomes_its_columns() -> None:
    rows, broken = decode(PLAIN, GOOD)
    assert rows == [{**GOOD, "at": datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)}]
    assert broken == [False]


@pytest.mark.parametrize("name", [*DEFECTS, *CLOCK_DEFECTS])
def test_a_defect_breaks_its_own_row_and_no_other(name: str) -> None:
    reason, spoil = (DEFECTS | CLOCK_DEFECTS)[name]
    rows, broken = decode(PLAIN, GOOD, spoil(dict(GOOD)), GOOD)
    assert broken == [False, reason == "unparsable", False]
    assert rows[0] == rows[2]


@pytest.mark.parametrize(
    "value",
    [
        b'{"undeclared": "\xff"}',
        b'{"amount": 1.0}',
        b'{"amount": 1e2}',
        b'{"amount": true}',
        b'{"price": NaN}',
        b'{"price": 7}',
        b'{"at": "2026-01-01T00:00:00"}',
        b'{"at": "2026-01-01T02:00:00+02:00"}',
        b'{"at": "2026-01-01"}',
        b'{"at": "2026-01-01T24:00:00Z"}',
        b'{"device": "a", "device": "b"}',
        b"\xef\xbb\xbf{}",
        b"{} {}",
        b'{"amount": 9223372036854775807}',
        b'{"amount": -9223372036854775809}',
    ],
)
def test_it_reads_what_the_oracle_reads(value: bytes) -> None:
    """The oracle's reader was written apart from this one; on values at the border the two must agree."""
    schema: dict[str, Any] = {part.split()[0]: part.split()[1] for part in COLUMNS.split(", ")}
    try:
        expected: dict[str, Any] | None = parse_fields(value, schema)
    except UnparsableError:
        expected = None
    rows, broken = decode(PLAIN, value)
    assert broken == [expected is None]
    if expected is not None:
        at = rows[0]["at"]
        micros = None if at is None else round(at.timestamp() * 1e6)
        assert {**rows[0], "at": micros} == expected


def test_nested_and_exact_types() -> None:
    item = pa.struct([("name", pa.string()), ("n", pa.int32())])
    schema = pa.schema(
        [
            ("tags", pa.list_(pa.string())),
            ("items", pa.list_(item)),
            ("counts", pa.map_(pa.string(), pa.int64())),
            ("price", pa.decimal128(6, 2)),
            ("day", pa.date32()),
        ]
    )
    value = {"tags": ["a", None], "items": [{"name": "x", "n": 1, "more": 2}], "counts": {"k": 1}, "price": "12.34"}
    rows, broken = decode(schema, {**value, "day": "2026-02-28"}, {"price": "1234567.89"}, {"items": [{"n": "1"}]})
    assert broken == [False, True, True]
    assert rows[0]["items"] == [{"name": "x", "n": 1}]
    assert rows[0]["counts"] == [("k", 1)]
    assert (rows[0]["price"], rows[0]["day"]) == (Decimal("12.34"), date(2026, 2, 28))


def test_a_column_may_have_any_name() -> None:
    schema = pa.schema([("class", pa.string()), ("a b", pa.int64()), ("c0", pa.string())])
    rows, broken = decode(schema, {"class": "x", "a b": 1, "c0": "y"})
    assert rows == [{"class": "x", "a b": 1, "c0": "y"}]
    assert broken == [False]


def test_a_value_nested_without_end_is_broken_and_not_a_crash() -> None:
    deep = b'{"device": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    _, broken = decode(PLAIN, deep, GOOD)
    assert broken == [True, False]
