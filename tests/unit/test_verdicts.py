"""The verdict on a job's lag: one story per word, and that there is always exactly one."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace import metrics
from millrace_lag.verdicts import ENOUGH, REASONS, Sample, Verdict, judge, trend

pytestmark = pytest.mark.unit

ONE = ("views", 0)


def story(
    position: Callable[[int], int], end: Callable[[int], int], samples: int = 20, step_seconds: float = 5.0
) -> list[Sample]:
    """A job with one partition, looked at again and again."""
    history = []
    for i in range(samples):
        at, until = position(i), end(i)
        history.append(Sample(1000 + i * step_seconds, until - at, until - at, {ONE: at}, {ONE: until}))
    return history


def verdict(history: list[Sample], *, suspended: bool = False, still: float = 0.0, patience: float = 3.0) -> Verdict:
    return judge(history, suspended=suspended, still_seconds=still, patience_seconds=patience)


def test_everything_read_is_ok_at_first_sight() -> None:
    found = verdict(story(lambda i: 10, lambda i: 10, samples=1))
    assert (found.name, found.catch_up_seconds) == ("ok", 0)


def test_a_job_that_reads_what_was_there_is_ok_although_something_is_always_unread() -> None:
    assert verdict(story(lambda i: 100 * i, lambda i: 100 * i + 90)).name == "ok"


def test_growing_load_is_ok_as_long_as_everything_is_read() -> None:
    """More is unread at each look, because more comes; what was there at the first look is long done."""
    found = verdict(story(lambda i: 100 * i * i, lambda i: 100 * (i + 1) * (i + 1)))
    assert (found.name, found.catch_up_seconds) == ("ok", 0)


def test_a_saw_is_ok() -> None:
    """Batches every five looks: lag rises and falls, and nothing is left behind."""
    assert verdict(story(lambda i: 500 * (i // 5), lambda i: 100 * i + 1)).name == "ok"


def test_behind_at_first_sight_is_unknown() -> None:
    assert verdict(story(lambda i: 0, lambda i: 1000, samples=ENOUGH - 1), still=60).name == "unknown"


def test_catching_up_predicts_when_it_is_done() -> None:
    """100,000 behind, reading 300 a look while 100 come: 200 fewer each five seconds."""
    found = verdict(story(lambda i: 300 * i, lambda i: 100_000 + 100 * i))
    left = 100_000 - 19 * 200
    assert found.name == "catching-up"
    assert found.catch_up_seconds == pytest.approx(left / 40)


def test_catching_up_is_seen_through_noise() -> None:
    noise = [0, 37, -20, 55, -60, 12, -33, 48, 5, -51]
    history = story(lambda i: 300 * i + noise[i % 10], lambda i: 100_000 + 100 * i)
    assert verdict(history).name == "catching-up"


def test_falling_behind() -> None:
    found = verdict(story(lambda i: 100 * i, lambda i: 50_000 + 300 * i))
    assert (found.name, found.catch_up_seconds) == ("falling-behind", math.inf)


def test_one_partition_that_falls_behind_is_enough() -> None:
    cold, hot = ("views", 0), ("views", 1)
    history = [
        Sample(
            1000 + 5.0 * i,
            90_000 - 300 * i,
            max(60_000 - 1000 * i, 30_000 + 700 * i),
            {cold: 1000 * i, hot: 10 * i},
            {cold: 60_000, hot: 30_000 + 710 * i},
        )
        for i in range(40)
    ][-20:]
    assert verdict(history).name == "falling-behind"


def test_as_fast_as_records_come_is_ok_however_far_behind() -> None:
    found = verdict(story(lambda i: 100 * i, lambda i: 50_000 + 100 * i))
    assert (found.name, found.catch_up_seconds) == ("ok", math.inf)


def test_stalled_is_having_work_and_not_moving() -> None:
    found = verdict(story(lambda i: 5, lambda i: 100 + i), still=95)
    assert found.name == "stalled"
    assert "has not moved for 95 s" in found.sentence


def test_a_job_that_kept_up_and_hangs_is_stalled_before_its_good_past_is_forgotten() -> None:
    history = story(lambda i: 100 * min(i, 13), lambda i: 100 * i + 50)
    assert verdict(history, still=30).name == "stalled"


def test_between_two_batches_is_not_stalled() -> None:
    assert verdict(story(lambda i: 5, lambda i: 100 + i), still=95, patience=600).name != "stalled"


def test_stopped_is_suspended() -> None:
    assert verdict(story(lambda i: 5, lambda i: 100 + i), still=95, suspended=True).name == "stopped"


def test_rewound_until_it_is_read_again() -> None:
    history = story(lambda i: 900 if i < 10 else 100 + i, lambda i: 1000)
    history[10] = Sample(**{**history[10].__dict__, "back": True})
    assert verdict(history).name == "rewound"
    done = Sample(2000.0, 0, 0, {ONE: 1000}, {ONE: 1000})
    assert verdict([*history, done]).name == "ok"


@pytest.mark.parametrize("suspended", [True, False])
def test_losing_data_comes_before_everything(suspended: bool) -> None:
    history = story(lambda i: 50, lambda i: 100)
    history[-1] = Sample(**{**history[-1].__dict__, "gap": 50, "lost": 50})
    found = verdict(history, suspended=suspended, still=100)
    assert found.name == "losing-data"
    assert "50 records" in found.sentence


def test_what_was_lost_long_ago_is_no_verdict_for_ever() -> None:
    history = [Sample(**{**one.__dict__, "lost": 7}) for one in story(lambda i: 10, lambda i: 10)]
    assert verdict(history).name == "ok"


@pytest.mark.parametrize(
    ("name", "healthy"),
    [
        ("ok", "True"),
        ("catching-up", "True"),
        ("falling-behind", "False"),
        ("stalled", "False"),
        ("rewound", "False"),
        ("losing-data", "False"),
        ("stopped", "Unknown"),
        ("unknown", "Unknown"),
    ],
)
def test_condition(name: str, healthy: str) -> None:
    assert Verdict(name, "").healthy == healthy  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], 0),
        ([1], 0),
        ([1, 2, 3], 0),
        ([1, 2, 3, 4, 5, 6], 1),
        ([6, 5, 4, 3, 2, 1], -1),
        ([4, 4, 4, 4, 4, 4, 4], 0),
        ([1, 9, 1, 9, 1, 9, 1, 9], 0),
    ],
)
def test_trend(values: list[int], expected: int) -> None:
    assert trend(values) == expected


counts = st.integers(0, 10**9)
samples = st.builds(
    lambda at, position, left, gap, lost, back: Sample(
        at, left, left, {ONE: position}, {ONE: position + left}, gap, lost, back
    ),
    st.floats(0, 4e9),
    counts,
    counts,
    counts,
    counts,
    st.booleans(),
)


@given(st.lists(samples, max_size=24), st.booleans(), st.floats(0, 1e9), st.floats(0, 1e9))
def test_there_is_always_a_verdict(history: list[Sample], suspended: bool, still: float, patience: float) -> None:
    history.sort(key=lambda one: one.at)
    found = judge(history, suspended=suspended, still_seconds=still, patience_seconds=patience)
    assert found.name in metrics.VERDICTS
    assert found.sentence
    assert found.catch_up_seconds >= 0


def test_metric_and_verdicts_agree() -> None:
    assert set(REASONS) == set(metrics.VERDICTS)
