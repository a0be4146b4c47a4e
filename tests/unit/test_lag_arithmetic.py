"""Lag from offsets and times: tables of what must come out, and what must hold for any numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.kafka.commits import Note, note, read_note
from millrace.kafka.retention import keep
from millrace.lag import Keep, Log, Place, Written, age, margin, place

pytestmark = pytest.mark.unit

DAY = 86400.0


@pytest.mark.parametrize(
    ("committed", "log", "begin", "position", "records", "gap", "beyond"),
    [
        pytest.param(10, Log(0, 10), 0, 10, 0, 0, False, id="caught up"),
        pytest.param(4, Log(0, 10), 0, 4, 6, 0, False, id="behind"),
        pytest.param(4, Log(7, 10), 0, 7, 3, 3, False, id="retention overtook it"),
        pytest.param(4, Log(10, 10), 0, 10, 0, 6, False, id="retention took everything"),
        pytest.param(4, Log(4, 10), 0, 4, 6, 0, False, id="exactly at the start"),
        pytest.param(50, Log(0, 10), 0, 0, 10, 0, True, id="topic made anew"),
        pytest.param(None, Log(3, 10), 3, 3, 7, 0, False, id="no commit, from the start"),
        pytest.param(None, Log(3, 10), 10, 10, 0, 0, False, id="no commit, from the end"),
        pytest.param(None, Log(3, 10), 1, 3, 7, 0, False, id="no commit, begin was deleted"),
        pytest.param(None, Log(0, 0), 0, 0, 0, 0, False, id="empty"),
        pytest.param(0, Log(0, 0), 0, 0, 0, 0, False, id="empty, committed"),
    ],
)
def test_place(
    committed: int | None, log: Log, begin: int, position: int, records: int, gap: int, beyond: bool
) -> None:
    found = place(committed, log, begin)
    assert (found.position, found.records, found.gap, found.beyond) == (position, records, gap, beyond)


offsets = st.integers(0, 2**62)


@given(st.none() | offsets, offsets, offsets, offsets)
def test_lag_is_never_negative_and_the_position_never_outside_the_log(
    committed: int | None, start: int, end: int, begin: int
) -> None:
    found = place(committed, Log(start, end), begin)
    assert found.records >= 0
    assert found.gap >= 0
    assert start <= found.position <= max(start, end)


times = st.floats(0, 4e9)


@given(times, st.none() | times, st.none() | times)
def test_age_is_a_number_and_never_negative(now: float, written: float | None, since: float | None) -> None:
    found = age(now, written, since)
    assert found >= 0
    assert math.isfinite(found)


def test_a_clock_that_runs_ahead_hides_no_lag() -> None:
    assert age(1000.0, written=5000.0, unread_since=900.0) == 100.0


def test_a_record_that_was_written_before_it_was_seen_has_its_own_age() -> None:
    assert age(1000.0, written=400.0, unread_since=900.0) == 600.0


@pytest.mark.parametrize(
    ("spot", "kept", "written", "rate", "expected"),
    [
        pytest.param(Place(4, Log(0, 10)), Keep(DAY), Written(9000.0), 0.0, DAY - 1000, id="by the record's own time"),
        pytest.param(Place(4, Log(0, 10)), Keep(500.0), Written(9000.0), 0.0, 0.0, id="overdue is zero"),
        pytest.param(Place(10, Log(0, 10)), Keep(DAY), None, 5.0, DAY, id="nothing unread"),
        pytest.param(Place(4, Log(0, 10)), Keep(), Written(9000.0), 5.0, math.inf, id="kept for ever"),
        pytest.param(
            Place(4, Log(0, 10)), Keep(DAY, 1000.0), Written(9000.0, 10.0), 2.0, 47.0, id="by size: (100 - 6) / 2"
        ),
        pytest.param(
            Place(4, Log(0, 10)), Keep(DAY, 1000.0), Written(9000.0, 10.0), 0.0, DAY - 1000, id="nothing is written"
        ),
        pytest.param(
            Place(4, Log(0, 10)), Keep(DAY, 1000.0), Written(9000.0), 2.0, DAY - 1000, id="size of records not known"
        ),
        pytest.param(
            Place(150, Log(100, 200)), Keep(DAY, 800.0, 200.0), Written(9000.0), 3.0, 10.0, id="size bounded by the log"
        ),
    ],
)
def test_margin(spot: Place, kept: Keep, written: Written | None, rate: float, expected: float) -> None:
    assert margin(10_000.0, spot, kept, written, rate) == pytest.approx(expected)


@given(times, offsets, offsets, times, st.floats(0, 1e9), st.floats(1e-3, 1e9), st.floats(1, 1e15))
def test_margin_is_never_negative_and_never_nan(
    now: float, position: int, end: int, at: float, rate: float, size: float, kept: float
) -> None:
    found = margin(now, place(position, Log(0, end), 0), Keep(kept, kept), Written(at, size), rate)
    assert found >= 0


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "1000", "retention.bytes": "-1"}, Keep(1.0, math.inf, math.inf)),
        ({"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "5"}, Keep(math.inf, 5.0, math.inf)),
        ({"cleanup.policy": "compact", "retention.ms": "1000"}, Keep()),
        ({"cleanup.policy": "compact,delete", "retention.ms": "1000"}, Keep(1.0, math.inf, math.inf)),
    ],
)
def test_keep(settings: dict[str, str], expected: Keep) -> None:
    assert keep(settings) == expected


def test_a_note_is_read_as_it_was_written() -> None:
    assert read_note(note(1700000000.25, 2.5, 7)) == Note(1700000000.25, 2.5, 7)


def test_the_zero_that_librdkafka_puts_behind_it_does_not_matter() -> None:
    assert read_note(note(1.5) + "\0") == Note(1.5)


@pytest.mark.parametrize(
    "text", [None, "", "7", "{", "[]", "{}", '{"at": "now"}', '{"at": -1}', '{"at": NaN}', '{"at": 1, "lost": null}']
)
def test_what_others_commit_is_no_note(text: str | None) -> None:
    assert read_note(text) is None


@given(st.text())
def test_reading_a_note_never_fails(text: str) -> None:
    read_note(text)
