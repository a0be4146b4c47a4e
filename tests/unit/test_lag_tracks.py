"""A job followed over several readings: what is remembered, what is lost, when it last moved, what it all becomes."""

import math
from collections.abc import Iterable

import pytest

from millrace import metrics
from millrace.kafka.commits import Commit, Note
from millrace.kafka.positions import Standing
from millrace.lag import Keep, Log, Partition, Written, place
from millrace_lag import compatible
from millrace_lag.polling import ClusterView, Health
from millrace_lag.snapshots import as_json, snapshot
from millrace_lag.subjects import Subject
from millrace_lag.tracks import SAMPLES, JobLag, Loss, Memory, blind, follow, follow_loss, unseen

pytestmark = pytest.mark.unit

ONE = ("views", 0)
JOB = Subject("shop", "orders", "kafka:9092", {"views": "earliest"}, slo_lag_seconds=60.0)


def seen(
    offset: int | None, log: Log, written: float | None = None, note: Note | None = None, one: Partition = ONE
) -> Standing:
    commits = {} if offset is None else {one: Commit(offset, note)}
    spot = place(offset, log, log.start)
    times = {one: Written(written)} if written is not None and spot.records else {}
    untimed = frozenset({one}) if written is None and spot.records else frozenset()
    return Standing({one: spot}, times, commits, untimed)


def run(
    steps: Iterable[tuple[float, Standing]], who: Subject = JOB, memory: Memory | None = None
) -> tuple[Memory, JobLag]:
    found: JobLag | None = None
    memory = memory or Memory()
    for at, step in steps:
        memory, found = follow(memory, who, step, at, {"views": Keep(1000.0)})
    assert found is not None
    return memory, found


def test_seconds_are_the_age_of_the_record_at_the_position() -> None:
    _, found = run([(1000.0, seen(5, Log(0, 10), written=940.0))])
    assert (found.records, found.seconds, found.margin_seconds) == (5, 60.0, 940.0)


def test_a_stopped_job_keeps_its_figures_and_its_lag_grows() -> None:
    _, found = run([(1000.0 + i, seen(5, Log(0, 10), written=940.0)) for i in range(50)])
    assert (found.records, found.seconds) == (5, 109.0)


def test_a_record_from_the_future_still_waits() -> None:
    _, found = run([(1000.0, seen(5, Log(0, 10), written=9000.0)), (1030.0, seen(5, Log(0, 10), written=9000.0))])
    assert found.seconds == 30.0


def test_a_record_whose_time_did_not_come_is_taken_for_as_old_as_the_one_before() -> None:
    _, found = run([(1000.0, seen(5, Log(0, 10), written=940.0)), (1005.0, seen(7, Log(0, 10)))])
    assert (found.seconds, found.untimed) == (65.0, 1)


def test_a_partition_without_a_leader_keeps_its_figures_and_one_that_is_gone_does_not() -> None:
    steps = [(1000.0, seen(5, Log(0, 10), written=940.0))]
    silent = Standing({}, {}, {}, unanswered=frozenset({ONE}))
    memory, found = run([*steps, (1010.0, silent)])
    assert (found.records, found.seconds) == (5, 60.0)
    assert run([(1020.0, seen(5, Log(0, 10), written=940.0))], memory=memory)[1].seconds == 80.0
    assert run([*steps, (1010.0, Standing({}, {}, {}))])[1].partitions == {}


def test_memory_is_bounded() -> None:
    memory, _ = run([(1000.0 + 5 * i, seen(i, Log(0, 1000 + i), written=900.0)) for i in range(100)])
    assert len(memory.history) == SAMPLES


def test_a_slow_job_is_looked_at_over_several_of_its_own_cycles() -> None:
    slow = Subject("shop", "orders", "kafka:9092", {"views": "earliest"}, trigger_seconds=600.0)
    steps = [(1000.0 + 5 * i, seen(100 * (i // 120), Log(0, i + 1), written=900.0)) for i in range(1000)]
    memory, found = run(steps, slow)
    assert memory.history[-1].at - memory.history[0].at > 3 * 600
    assert found.verdict.name != "stalled"


def test_last_progress_is_the_last_move() -> None:
    behind = Log(0, 100)
    steps = [(1000.0, seen(5, behind, 900.0)), (1005.0, seen(9, behind, 900.0)), (1010.0, seen(9, behind, 900.0))]
    assert run(steps)[1].last_progress == 1005.0


def test_having_nothing_to_read_is_progress() -> None:
    assert run([(1000.0 + i, seen(5, Log(0, 5))) for i in range(10)])[1].last_progress == 1009.0


def test_after_a_restart_of_the_observer_the_job_s_own_note_tells_the_last_progress() -> None:
    assert run([(1000.0, seen(5, Log(0, 10), 900.0, Note(at=700.0)))])[1].last_progress == 700.0


def test_a_dead_job_is_stalled() -> None:
    _, found = run([(1000.0 + 5 * i, seen(5, Log(0, 10 + i), 990.0)) for i in range(10)])
    assert found.verdict.name == "stalled"


def test_long_batches_are_no_stall_once_they_are_known() -> None:
    """A batch a minute; looked at every five seconds."""
    steps = [(1000.0 + 5 * i, seen(600 * (i // 12), Log(0, 51 * i + 700), 990.0)) for i in range(300)]
    memory, found = Memory(), unseen(0)
    names = set()
    for at, step in steps:
        memory, found = follow(memory, JOB, step, at, {})
        if at > 1150:
            names.add(found.verdict.name)
    assert "stalled" not in names


def test_an_end_that_looks_too_small_once_is_no_rewind() -> None:
    _, found = run([(1000.0, seen(50, Log(0, 50))), (1005.0, seen(50, Log(0, 10), 900.0))])
    assert (found.records, found.verdict.name) == (0, "ok")


def test_a_topic_made_anew_is_read_from_its_start_and_is_a_rewind() -> None:
    steps = [(1000.0, seen(50, Log(0, 50))), *((1005.0 + i, seen(50, Log(0, 10), 1001.0)) for i in range(2))]
    _, found = run(steps)
    assert (found.records, found.verdict.name) == (10, "rewound")


def test_a_position_that_went_back_is_a_rewind() -> None:
    _, found = run([(1000.0, seen(50, Log(0, 60), 900.0)), (1005.0, seen(20, Log(0, 60), 800.0))])
    assert found.verdict.name == "rewound"


@pytest.mark.parametrize(
    ("before", "commit", "start", "total"),
    [
        pytest.param(None, Commit(5), 0, 0, id="nothing lost"),
        pytest.param(None, Commit(5), 9, 4, id="a gap is lost also at first sight"),
        pytest.param(Loss(5, 9), Commit(5), 12, 7, id="the gap grows"),
        pytest.param(Loss(5, 9), Commit(20), 9, 4, id="the job skipped it: it stays lost"),
        pytest.param(Loss(5, 9), Commit(20), 25, 9, id="and then loses more"),
        pytest.param(Loss(5, 9, 100), Commit(7), 9, 104, id="a position inside the gap"),
        pytest.param(Loss(5, 9, 3), Commit(0), 0, 7, id="the topic was made anew"),
        pytest.param(Loss(5, 9, 3), None, 9, 7, id="the commit is gone"),
        pytest.param(None, Commit(50, Note(1.0, lost=33)), 0, 33, id="the job's note survives our restart"),
        pytest.param(Loss(5, 9), Commit(50, Note(1.0, lost=6)), 9, 6, id="the job saw more than we did"),
        pytest.param(Loss(5, 9), Commit(50, Note(1.0, lost=0)), 9, 4, id="the job counted nothing"),
        pytest.param(None, Commit(50, Note(1.0, lost=33)), 60, 43, id="noted, and a gap"),
    ],
)
def test_loss(before: Loss | None, commit: Commit | None, start: int, total: int) -> None:
    found = follow_loss(before, commit, Log(start, 1000))
    assert found is not None
    assert found.total == total


def test_losing_data_shows_in_figure_and_verdict() -> None:
    _, found = run([(1000.0, seen(5, Log(9, 20), written=999.0))])
    assert (found.lost, found.records, found.verdict.name) == (4, 11, "losing-data")


def view(job: JobLag, up: bool = True) -> ClusterView:
    return ClusterView("kafka:9092", (JOB,), {JOB.key: job}, Health(up=up, polls=3, failures=0 if up else 1))


def test_what_prometheus_gets() -> None:
    _, found = run([(1000.0, seen(5, Log(9, 20), written=999.0))])
    samples = snapshot([view(found)], listed_at=1.0)
    labels = ("shop", "orders", "views", "0")
    assert samples[metrics.JOB_LAG_RECORDS][labels] == 11
    assert samples[metrics.JOB_LAG_SECONDS][labels] == 1.0
    assert samples[metrics.JOB_RECORDS_LOST][labels] == 4
    assert samples[metrics.JOB_SLO_LAG]["shop", "orders"] == 60.0
    assert samples[metrics.JOB_VERDICT]["shop", "orders", "losing-data"] == 1
    assert not samples[metrics.JOB_SLO_STRAGGLERS]
    assert set(samples) == {one for one in metrics.ALL if one.exporter == "observer"}


def test_blind_keeps_the_figures_but_not_the_verdict() -> None:
    _, found = run([(1000.0, seen(5, Log(0, 20), written=999.0))])
    samples = snapshot([view(blind(found, "no answer"), up=False)], listed_at=1.0)
    assert samples[metrics.JOB_LAG_RECORDS]["shop", "orders", "views", "0"] == 15
    assert samples[metrics.JOB_OBSERVED]["shop", "orders"] == 1000.0
    assert samples[metrics.JOB_VERDICT]["shop", "orders", "unknown"] == 1
    assert samples[metrics.OBSERVER_UP][("kafka:9092",)] == 0


def test_a_job_that_was_never_seen_has_no_lag_of_zero() -> None:
    samples = snapshot([view(unseen(1000.0))], listed_at=1.0)
    assert not samples[metrics.JOB_LAG_RECORDS]
    assert not samples[metrics.JOB_LAST_PROGRESS]
    assert samples[metrics.JOB_SUSPENDED]["shop", "orders"] == 0


def test_exporter_names_only_when_asked_for() -> None:
    _, found = run([(1000.0, seen(5, Log(0, 20), written=999.0))])
    group = "millrace.shop.orders"
    assert compatible.GROUP_LAG not in snapshot([view(found)], 1.0)
    samples = snapshot([view(found)], 1.0, exporter_names=True)
    assert samples[compatible.GROUP_LAG][group, "views", "0"] == 15
    assert samples[compatible.LOG_END]["views", "0"] == 20


def test_json_has_no_infinity() -> None:
    _, found = run([(1000.0 + 5 * i, seen(5, Log(0, 20 + i), written=999.0)) for i in range(10)])
    (job,) = as_json([view(found)])["jobs"]
    assert math.isinf(found.verdict.catch_up_seconds)
    assert job["catchUpSeconds"] is None
    assert job["lagHealthy"]["status"] == "False"
    assert job["lagHealthy"]["reason"] == "Stalled"
