"""The judge against a plain reading of docs/concepts.md, event by event and window by window."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace_jobs.judging import NEVER, JudgeRule, Policy, WindowRule, highs_before, judge

pytestmark = pytest.mark.unit

TUMBLING, HOPPING = WindowRule("tumbling", 10, 10), WindowRule("hopping", 10, 4)
SLIDING, SESSION = WindowRule("sliding", 7, 7), WindowRule("session", 4, 4)
WINDOWS = (TUMBLING, HOPPING, SLIDING, SESSION)
DELAY, LATENESS = 6, 20


def ends(window: WindowRule, time: int) -> list[int]:
    """The ends of an event's windows, by trying every start."""
    if window.type == "session":
        return [time + window.size]
    if window.type == "sliding":
        return [time]
    starts = range(time - window.size - 1, time + 1)
    return [s + window.size for s in starts if s % window.every == 0 and s <= time < s + window.size]


def rule(window: WindowRule, policy: Policy) -> JudgeRule:
    return JudgeRule(window, DELAY, policy, LATENESS)


@pytest.mark.parametrize("policy", ["drop", "aside", "correct"])
@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.type)
@settings(max_examples=60, deadline=None)
@given(times=st.lists(st.integers(-60, 200), min_size=1, max_size=30))
def test_each_event_is_judged_as_the_contract_says(window: WindowRule, policy: Policy, times: list[int]) -> None:
    vector = np.array(times, dtype=np.int64)
    frontiers = highs_before(vector, NEVER) - DELAY
    judged = judge(rule(window, policy), vector, frontiers)
    high = NEVER
    for index, time in enumerate(times):
        frontier = high - DELAY
        missed = [end for end in ends(window, time) if end <= frontier]
        let_in = [end for end in missed if policy == "correct" and end > frontier - LATENESS]
        counted = [end for end in ends(window, time) if end not in missed or end in let_in]
        assert judged.missed[index] == len(missed)
        assert judged.last_missed[index] == max(missed, default=NEVER)
        assert judged.counts[index] == bool(counted)
        assert judged.corrects[index] == bool(let_in)
        if counted and window.is_aligned:
            assert judged.first[index] == min(counted)
        high = max(high, time)


@given(times=st.lists(st.integers(-100, 100), max_size=20), cut=st.integers(0, 20))
def test_a_batch_border_changes_no_high(times: list[int], cut: int) -> None:
    whole = np.array(times, dtype=np.int64)
    first, second = whole[:cut], whole[cut:]
    high = int(first.max()) if len(first) else NEVER
    parts = [*highs_before(first, NEVER), *highs_before(second, high)]
    assert parts == list(highs_before(whole, NEVER))


def test_the_first_event_of_a_partition_is_never_late() -> None:
    judged = judge(rule(TUMBLING, "drop"), np.array([-(10**15)]), np.array([NEVER - DELAY]))
    assert not judged.late.any()


def test_without_a_window_nothing_is_late() -> None:
    judged = judge(JudgeRule(None, DELAY, "drop", 0), np.array([5, 1]), np.array([100, 100]))
    assert not judged.late.any()
    assert judged.counts.all()
