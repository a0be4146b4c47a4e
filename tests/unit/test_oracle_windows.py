"""The oracle on logs of a few lines, with answers worked out by hand. START is a multiple of ten seconds."""

import pytest

from tests.oracle.hand import at, hand_job, outcome, rows, verdicts

pytestmark = pytest.mark.unit


def test_tumbling_puts_each_event_into_the_one_window_that_holds_it() -> None:
    # 9.999 is still in [0, 10); 10 is in [10, 20). The event at 30 closes both and stays open itself.
    found = outcome(hand_job("tumbling"), [(0, "a", 1), (9.999, "a", 2), (10, "a", 4), (12, "b", 8), (30, "a", 0)])
    assert rows(found) == [("a", 0, 10, 2, 3), ("a", 10, 20, 1, 4), ("b", 10, 20, 1, 8)]
    assert verdicts(found) == ["on_time"] * 5


def test_a_window_that_ends_exactly_at_the_frontier_is_missed_and_one_step_later_is_not() -> None:
    # High 13, delay 3: the frontier is 10, so [0, 10) is over.
    job = hand_job("tumbling", delay="3s")
    assert verdicts(outcome(job, [(13, "a", 1), (9, "a", 1)])) == ["on_time", "dropped"]
    assert verdicts(outcome(job, [(12.999999, "a", 1), (9, "a", 1)])) == ["on_time", "on_time"]


def test_a_window_closes_exactly_when_the_watermark_reaches_its_end() -> None:
    job = hand_job("tumbling", delay="3s")
    assert rows(outcome(job, [(5, "a", 1), (13, "a", 1)])) == [("a", 0, 10, 1, 1)]
    assert rows(outcome(job, [(5, "a", 1), (12.999999, "a", 1)])) == []


def test_the_event_that_moves_the_high_is_judged_by_the_high_before_it() -> None:
    # 49 before 50 is on time, and after 50, when [40, 50) is over, it is not.
    found = outcome(hand_job("tumbling"), [(1, "a", 1), (49, "a", 1), (50, "a", 1), (49, "a", 1), (51, "a", 1)])
    assert verdicts(found) == ["on_time", "on_time", "on_time", "dropped", "on_time"]


def test_another_partition_makes_nothing_late_and_holds_the_watermark() -> None:
    # Partition 1 is at 51, partition 0 at 12: 5 is late in neither. W = 12 closes [0, 10) alone.
    found = outcome(hand_job("tumbling"), [(5, "a", 1), (12, "a", 2)], [(50, "a", 4), (51, "a", 8)])
    assert verdicts(found) == ["on_time"] * 4
    assert rows(found) == [("a", 0, 10, 1, 1)]
    assert found.watermark == at(12)


def test_a_partition_without_a_valid_event_holds_every_window_open() -> None:
    found = outcome(hand_job("tumbling"), [(5, "a", 1), (50, "a", 1)], [b"broken"])
    assert (rows(found), found.watermark, found.highs) == ([], None, {0: at(50), 1: None})


def test_hopping_missed_in_part_counts_in_the_rest_and_is_one_late_event() -> None:
    # Size 10 every 5. High 11: of 4's windows [-5, 5) and [0, 10) both are over, of 7's [0, 10) but not [5, 15).
    found = outcome(hand_job("hopping"), [(11, "a", 1), (4, "a", 2), (7, "a", 4), (30, "a", 0)])
    assert verdicts(found) == ["on_time", "dropped", "dropped", "on_time"]
    assert found.totals["late"] == 2
    assert found.totals["windows_missed"] == 3
    assert rows(found) == [("a", 5, 15, 2, 5), ("a", 10, 20, 1, 1)]


def test_a_session_is_a_chain_of_events_less_than_the_gap_apart() -> None:
    # 0, 4.999 and 9.9 hang together; 14.9 is exactly five after 9.9 and so begins anew.
    events = [(0, "a", 1), (4.999, "a", 2), (9.9, "a", 4), (14.9, "a", 8), (60, "z", 0)]
    found = outcome(hand_job("session"), events)
    assert rows(found) == [("a", 0, 14.9, 3, 7), ("a", 14.9, 19.9, 1, 8)]


def test_a_session_closes_one_gap_after_its_end() -> None:
    # The session of the event at 10 ends at 15 and closes at 20: 15.1 could still bring an on-time event at 14.
    assert rows(outcome(hand_job("session"), [(10, "a", 1), (20, "b", 1)])) == [("a", 10, 15, 1, 1)]
    assert rows(outcome(hand_job("session"), [(10, "a", 1), (19.999999, "b", 1)])) == []


def test_an_event_bridges_two_sessions_of_its_key_and_none_of_another() -> None:
    # High 16: 12 + 5 = 17 is after the frontier, so 12 is on time and joins 8 to 16.
    found = outcome(hand_job("session"), [(8, "a", 1), (8, "b", 1), (16, "a", 2), (12, "a", 4), (59, "z", 0)])
    assert rows(found) == [("a", 8, 21, 3, 7), ("b", 8, 13, 1, 1)]


def test_a_dropped_event_bridges_nothing() -> None:
    # High 17: 12 + 5 = 17 is exactly the frontier, so 12 is late, and the sessions stay apart.
    found = outcome(hand_job("session"), [(8, "a", 1), (17, "a", 2), (12, "a", 4), (59, "z", 0)])
    assert verdicts(found)[2] == "dropped"
    assert rows(found) == [("a", 8, 13, 1, 1), ("a", 17, 22, 1, 2)]


def test_sliding_has_one_result_for_each_time_over_all_within_the_size_before_it() -> None:
    # At 5 the event of 0 is just within [0, 5]; at 5.001 no more. Two events at 5 make one result.
    events = [(0, "a", 1), (5, "a", 2), (5, "a", 4), (5.001, "a", 8), (5, "b", 16), (50, "z", 0), (50, "z", 0)]
    found = outcome(hand_job("sliding", delay="1s"), events)
    assert rows(found) == [
        ("a", -5, 0, 1, 1),
        ("a", 0, 5, 3, 7),
        ("a", 0.001, 5.001, 3, 14),
        ("b", 0, 5, 1, 16),
    ]


def test_sliding_at_the_same_time_as_the_frontier_is_late() -> None:
    # Without a delay the second event at one time is late already: window_end = t = frontier.
    found = outcome(hand_job("sliding"), [(5, "a", 1), (5, "a", 2), (6, "a", 4)])
    assert verdicts(found) == ["on_time", "dropped", "on_time"]
    # What was dropped is in no one else's window either.
    assert rows(found) == [("a", 0, 5, 1, 1), ("a", 1, 6, 2, 5)]


def test_null_is_a_key_and_a_sum_of_nothing_is_null() -> None:
    found = outcome(hand_job("tumbling"), [(1, None, None), (2, None, None), (3, "a", None), (4, "a", 5), (20, "a", 0)])
    assert rows(found) == [(None, 0, 10, 2, None), ("a", 0, 10, 2, 5)]
