"""The oracle's verdicts, side records and corrections on logs of a few lines, with the answers worked out by hand."""

import json
from typing import Any

import pytest

from tests.oracle.chains import expected_publications
from tests.oracle.hand import at, hand_job, hand_log, outcome, rows, verdicts
from tests.oracle.logs import START
from tests.oracle.model import Log, Policy, Record
from tests.oracle.oracle import expect
from tests.oracle.reading import Publication
from tests.oracle.times import SECOND, format_time, parse_duration, parse_time

pytestmark = pytest.mark.unit


def test_one_event_is_malformed_future_late_or_on_time_and_never_two_of_them() -> None:
    log = [(30, "a", 1), b"{", None, b'{"device": "a"}', (60, "a", 2), (60.001, "a", 4), (3, "a", 8), (70, "a", 0)]
    found = outcome(hand_job("tumbling"), log)
    # The log's time is START and the bound a minute: 60 is just allowed, 60.001 is not, and 70 is not either.
    assert verdicts(found) == [
        "on_time",
        "malformed",
        "malformed",
        "malformed",
        "on_time",
        "future",
        "dropped",
        "future",
    ]
    assert found.totals == {
        "read": 8,
        "malformed": 3,
        "future": 2,
        "on_time": 2,
        "late": 1,
        "dropped": 1,
        "aside": 0,
        "corrected": 0,
        "windows_missed": 1,
    }
    # What comes from the future closes nothing.
    assert found.watermark == at(60)


def test_what_cannot_be_read_goes_to_the_malformed_topic_as_it_came() -> None:
    found = outcome(hand_job("tumbling"), [(1, "a", 1)], [b"{", None, b"{}", (90, "a", 1)])
    future = json.dumps({"device": "a", "n": 1, "at": format_time(at(90))}).encode()
    told = [(side.key, side.value, dict(side.headers)) for side in found.malformed]
    assert told == [
        (None, b"{", {"topic": "in", "partition": 1, "offset": 0, "reason": "unparsable"}),
        (None, None, {"topic": "in", "partition": 1, "offset": 1, "reason": "unparsable"}),
        (None, b"{}", {"topic": "in", "partition": 1, "offset": 2, "reason": "no-event-time"}),
        (b"a", future, {"topic": "in", "partition": 1, "offset": 3, "reason": "future"}),
    ]


def test_aside_tells_how_late_for_the_last_window_that_was_missed() -> None:
    # High 17.5, delay 1.25: frontier 16.25. The event at 7 misses [0, 10) and [5, 15): late by 1.25 s for the second.
    found = outcome(hand_job("hopping", "aside", delay="1250ms"), [(17.5, "a", 1), (7, "b", 2)])
    (side,) = found.aside
    assert side.key == b"b"
    assert dict(side.headers) == {
        "topic": "in",
        "partition": 0,
        "offset": 1,
        "late_by_ms": 1250,
        "window_end": at(15),
    }
    assert found.totals["aside"] == found.totals["late"] == 1
    assert found.totals["windows_missed"] == 2


def test_aside_leaves_the_event_out_of_what_it_missed_only() -> None:
    # The event at 7 misses [0, 10) and still counts in [5, 15).
    found = outcome(hand_job("hopping", "aside"), [(11, "a", 1), (7, "a", 2), (30, "z", 0)])
    assert rows(found) == [("a", 5, 15, 2, 3), ("a", 10, 20, 1, 1)]
    assert verdicts(found) == ["on_time", "aside", "on_time"]


@pytest.mark.parametrize(
    ("high", "fate"), [(29.999999, "corrected"), (30, "dropped"), (10, "corrected"), (9, "on_time")]
)
def test_correct_lets_in_what_is_late_by_less_than_the_allowed_lateness(high: float, fate: str) -> None:
    # [0, 10) with an allowed lateness of 20: in while 10 > high - 20.
    found = outcome(hand_job("tumbling", "correct"), [(high, "z", 0), (5, "a", 1)])
    assert verdicts(found) == ["on_time", fate]


def test_a_straggler_too_late_for_one_window_and_not_for_the_next_is_corrected_and_counts_there_only() -> None:
    # High 31, frontier 31, lateness 20: of 7's windows [0, 10) is beyond reach (10 <= 11), [5, 15) is not.
    found = outcome(hand_job("hopping", "correct"), [(31, "z", 0), (7, "a", 1), (50, "z", 0)])
    assert verdicts(found)[1] == "corrected"
    assert found.totals["windows_missed"] == 2
    assert [row for row in rows(found) if row[0] == "a"] == [("a", 5, 15, 1, 1, 1)]


def test_revision_counts_the_stragglers_of_that_very_window() -> None:
    # High 11: the event at 7 is late for [0, 10) and on time for [5, 15).
    found = outcome(hand_job("hopping", "correct"), [(6, "a", 1), (11, "a", 2), (7, "a", 4), (40, "z", 0)])
    assert rows(found) == [("a", 0, 10, 2, 5, 1), ("a", 5, 15, 3, 7, 0), ("a", 10, 20, 1, 2, 0)]


def test_three_clocks_correct_a_device_that_is_an_hour_off() -> None:
    def event(occurred: float, sent: float, received: float | None) -> bytes:
        clocks = {"at": format_time(at(occurred)), "sent": format_time(at(sent))}
        arrival = {} if received is None else {"received": format_time(at(received))}
        return json.dumps({"device": "a", "n": 1, **clocks, **arrival}).encode()

    # Device clock an hour ahead: 3605 by its clock, sent at 3607, received at 9: it happened at 7.
    # The future is measured against `received`: 70.001 + (9 - 9) > 10 + 60 only for the last.
    job = hand_job("tumbling", clocks=True)
    log = [event(3605, 3607, 9), event(1, 1, None), event(70, 10, 10), event(70.001, 10, 10)]
    found = outcome(job, log)
    assert verdicts(found) == ["on_time", "malformed", "on_time", "future"]
    assert [judgement.event.time for judgement in found.judgements if judgement.event] == [at(7), at(70)]
    assert found.malformed[0].headers[-1] == ("reason", "no-event-time")


def test_the_log_time_is_the_reference_without_a_received_clock() -> None:
    value = json.dumps({"device": "a", "n": 1, "at": format_time(at(500))}).encode()
    late_in_log = Record("in", 0, 0, START + 440 * SECOND, None, value)
    early_in_log = Record("in", 0, 1, START + 440 * SECOND - 1000, None, value)
    found = expect(hand_job("tumbling"), Log("in", ((late_in_log, early_in_log),)))
    assert verdicts(found) == ["on_time", "future"]


def told(publications: dict[Any, list[Publication]], device: str) -> list[list[Any]]:
    """Per key of the device: (events, revision, [(start, events) retracted]) or None for withdrawn."""
    return [[_told(one) for one in found] for key, found in sorted(publications.items(), key=str) if key[0] == device]


def _told(publication: Publication) -> Any:
    if publication.row is None:
        return None
    retracted = [((row["window_start"] - START) / SECOND, row["events"]) for row in publication.retracts or ()]
    return publication.row["events"], publication.row["revision"], retracted


def test_a_straggler_before_its_window_closes_is_part_of_the_first_publication() -> None:
    # Partition 1 lags at 3, so [0, 10) is open when partition 0 brings 5 after 12, which is late in its own partition.
    job, log = hand_job("tumbling", "correct"), hand_log([(12, "z", 0), (5, "a", 1)], [(3, "a", 1), (40, "z", 0)])
    assert told(expected_publications(job, log, [[2, 1], [2, 2]]), "a") == [[(2, 1, [])]]


def test_a_straggler_after_its_window_closed_corrects_it_and_two_of_one_batch_make_one_correction() -> None:
    job, log = hand_job("tumbling", "correct"), hand_log([(5, "a", 1), (12, "z", 0), (6, "a", 1), (7, "a", 1)])
    one_by_one = expected_publications(job, log, [[2], [3], [4]])
    assert told(one_by_one, "a") == [[(1, 0, []), (2, 1, [(0, 1)]), (3, 2, [(0, 2)])]]
    assert told(expected_publications(job, log, [[2], [4]]), "a") == [[(1, 0, []), (3, 2, [(0, 1)])]]
    assert told(expected_publications(job, log, [[4]]), "a") == [[(3, 2, [])]]


def test_a_straggler_that_bridges_two_sessions_retracts_both_and_withdraws_the_second() -> None:
    # Sessions [0, 5) and [8, 13) are published at W = 20; then 4.5 hangs both together. It ends at 13 as before.
    job, log = hand_job("session", "correct"), hand_log([(0, "a", 1), (8, "a", 1), (20, "z", 0), (4.5, "a", 1)])
    publications = expected_publications(job, log, [[3], [4]])
    assert told(publications, "a") == [[(1, 0, []), (3, 1, [(0, 1), (8, 1)])], [(1, 0, []), None]]


def test_a_session_that_a_straggler_makes_longer_is_withdrawn_until_it_closes_again() -> None:
    # [8, 13) closes at 18. At high 18, 12 is late (17 <= 18) and makes it [8, 17), which closes at 22.
    job = hand_job("session", "correct")
    log = hand_log([(8, "a", 1), (18, "z", 0), (12, "a", 1), (22, "z", 0)])
    publications = expected_publications(job, log, [[2], [3], [4]])
    assert told(publications, "a") == [[(1, 0, []), None, (2, 1, [])]]


def test_a_sliding_straggler_has_a_result_of_its_own_and_corrects_those_after_it() -> None:
    # Late at high 10: 6 has its own result and is within five seconds before 8, not before 3 or 11.5.
    job = hand_job("sliding", "correct")
    log = hand_log([(3, "a", 1), (8, "a", 1), (10, "z", 0), (6, "a", 1), (11.5, "a", 1), (20, "z", 0)])
    publications = expected_publications(job, log, [[3], [4], [6]])
    # Keys in order of their start: -2, 1, 3, 6.5. The result of 8 had 3 and 8 and now has 6 too.
    assert told(publications, "a") == [[(1, 0, [])], [(2, 1, [])], [(2, 0, []), (3, 1, [(3, 2)])], [(2, 0, [])]]


@pytest.mark.parametrize("policy", ["drop", "aside"])
def test_without_corrections_nothing_is_published_twice(policy: Policy) -> None:
    job, log = hand_job("tumbling", policy), hand_log([(5, "a", 1), (12, "z", 0), (6, "a", 1), (30, "z", 0)])
    publications = expected_publications(job, log, [[1], [2], [3], [4]])
    assert {key[0]: len(found) for key, found in publications.items()} == {"a": 1, "z": 1}
    assert all(one.retracts is None for found in publications.values() for one in found)


def test_times_are_read_to_the_microsecond_and_durations_in_parts() -> None:
    assert parse_duration("1m30s") == 90 * SECOND
    assert parse_time("2026-01-01T01:00:00.1234567+01:00") == START + 123_456
    assert format_time(START + 123_456) == "2026-01-01T00:00:00.123456Z"
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration("10 s")
