"""The pure parts around a batch: watermark, counts, files of state, failures, the checkpoint's card."""

from pathlib import Path
from typing import Any

import pytest

from millrace.errors import UserError
from millrace.resources.jobs import StreamJob
from millrace.resources.reading import parse_object
from millrace_jobs import state, watermarks
from millrace_jobs.accounts import Counts, StateFile
from millrace_jobs.checkpoints import CheckpointError, open_checkpoint
from millrace_jobs.failures import explain
from millrace_jobs.files import Folder
from millrace_jobs.judging import WindowRule
from millrace_jobs.sinks.kafka import SinkFailedError
from millrace_jobs.steps import UserCodeError
from millrace_jobs.windows import WindowQuery

pytestmark = pytest.mark.unit

A, B = ("t", 0), ("t", 1)


def test_the_slowest_partition_holds_the_watermark() -> None:
    assert watermarks.advance(None, {A: 100, B: 40}, set(), 10) == 30


def test_a_partition_without_an_event_holds_it_where_it_is() -> None:
    assert watermarks.advance(None, {A: 100, B: None}, set(), 10) is None
    assert watermarks.advance(7, {A: 100, B: None}, set(), 10) == 7


def test_a_partition_that_was_given_up_holds_nothing() -> None:
    assert watermarks.advance(7, {A: 100, B: None}, {B}, 10) == 90
    assert watermarks.advance(7, {A: 100}, {A}, 10) == 7


def test_the_watermark_never_goes_back() -> None:
    assert watermarks.advance(50, {A: 20}, set(), 10) == 50


def test_only_what_stays_silent_grows_quiet() -> None:
    assert watermarks.quiet({A: 5.0, B: 5.0}, {A}, [A, B], 2.0) == {A: 0.0, B: 7.0}


def test_counts_add_up_or_say_so() -> None:
    one = Counts(read=10, malformed=1, future=1, on_time=5, late=3, dropped=1, aside=1, corrected=1)
    assert one.holds()
    assert (one + one).holds()
    assert not Counts(read=1).holds()
    assert not Counts(read=1, late=1).holds()


def file(name: str, newest: int, rows: int = 100) -> StateFile:
    return StateFile("events", name, rows, newest - 5, newest)


def query(rule: WindowRule, corrects: bool = False) -> WindowQuery:
    return WindowQuery(rule, ("user",), {"n": "count(*)"}, corrects)


TUMBLING, SESSION = WindowRule("tumbling", 10, 10), WindowRule("session", 10, 10)


def test_a_file_stays_until_its_last_window_is_final() -> None:
    files = [file("old", 20), file("new", 21)]
    assert state.still_needed(query(TUMBLING), 0, files, 30) == [files[1]]
    assert state.still_needed(query(TUMBLING), 5, files, 30) == files
    assert state.still_needed(query(TUMBLING), 0, files, None) == files


def test_a_session_file_is_never_dropped_by_its_times_alone() -> None:
    assert state.still_needed(query(SESSION), 0, [file("old", 20)], 10_000) == [file("old", 20)]


def test_many_files_of_one_size_are_merged_and_a_large_one_is_left_alone() -> None:
    small = [file(f"s{n}", 100) for n in range(state.MERGE_AT)]
    large = file("large", 100, rows=1_000_000)
    assert state.to_merge(query(TUMBLING), 0, [*small, large], 50) == small
    assert state.to_merge(query(TUMBLING), 0, [*small[1:], large], 50) == []


def test_old_session_files_join_a_merge() -> None:
    small, old = [file(f"s{n}", 1000) for n in range(state.MERGE_AT)], file("old", 20, rows=1_000_000)
    assert old in state.to_merge(query(SESSION), 0, [*small, old], 990)


@pytest.mark.parametrize(
    ("error", "cause", "code"),
    [
        (UserError("No."), "SpecRefused", 2),
        (CheckpointError("No."), "CheckpointMisfit", 2),
        (UserCodeError("step: ValueError: x"), "UserCodeRaised", 3),
        (SinkFailedError("topic out: gone"), "SinkUnavailable", 1),
        (OSError(28, "No space left on device"), "CheckpointFailing", 1),
        (RuntimeError("deep inside\nSinkFailedError: table t: connection refused\nmore"), "SinkUnavailable", 1),
        (RuntimeError("org.apache.kafka.common.errors.TimeoutException: waiting"), "BrokerUnreachable", 1),
        (RuntimeError("UnknownTopicOrPartitionException: no such"), "TopicMissing", 1),
        (RuntimeError("what is this"), "Unknown", 1),
    ],
)
def test_a_failure_names_its_cause(error: Exception, cause: str, code: int) -> None:
    failure = explain(error)
    assert (failure.cause, failure.exit_code) == (cause, code)


def job(**changes: Any) -> StreamJob:
    window = {"type": "tumbling", "size": "10s", "by": ["user"], "aggregates": {"n": "count(*)"}}
    window |= changes.pop("window", {})
    source = {"name": "s", "topic": "in", "schema": "user string, at timestamp", "eventTime": {"column": "at"}}
    spec = {
        "kafka": {"bootstrapServers": "k:9092"},
        "sources": [source],
        "transform": [{"window": window}],
        "sinks": [{"topic": "out", "key": ["user", "window_start"]}],
        **changes,
    }
    data = {"apiVersion": "millrace.io/v1alpha1", "kind": "StreamJob", "metadata": {"name": "j"}, "spec": spec}
    read = parse_object(data)
    assert isinstance(read, StreamJob)
    return read


def test_a_checkpoint_is_found_again_with_its_name(tmp_path: Path) -> None:
    first = open_checkpoint(str(tmp_path), job())
    assert open_checkpoint(str(tmp_path), job(slo={"lagSeconds": 5.0})) == first
    assert first.folder == Folder(str(tmp_path))


def test_a_checkpoint_that_does_not_fit_is_refused_with_the_field(tmp_path: Path) -> None:
    open_checkpoint(str(tmp_path), job())
    with pytest.raises(CheckpointError, match=r"does not fit the spec: .*size: 10s → 20s.*restart-empty"):
        open_checkpoint(str(tmp_path), job(window={"size": "20s"}))


def test_restart_empty_begins_beside_the_old_state_under_a_new_name(tmp_path: Path) -> None:
    old = open_checkpoint(str(tmp_path), job())
    changed = job(window={"size": "20s"}, upgrade={"mode": "restart-empty"})
    new = open_checkpoint(str(tmp_path), changed)
    assert new.state != old.state
    assert new.folder != old.folder
    assert open_checkpoint(str(tmp_path), changed) == new


def test_another_jobs_checkpoint_is_refused(tmp_path: Path) -> None:
    open_checkpoint(str(tmp_path), job())
    other = job().model_copy(update={"metadata": job().metadata.model_copy(update={"name": "other"})})
    with pytest.raises(UserError, match=r"belongs to job default/j: give this job a folder of its own\."):
        open_checkpoint(str(tmp_path), other)


def test_a_file_is_whole_or_absent(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    assert folder.read("ledger/1") is None
    folder.write("ledger/1", b"one")
    folder.write("ledger/1", b"two")
    assert folder.read("ledger/1") == b"two"
    assert folder.names("ledger") == ["ledger/1"]
    folder.delete(["ledger/1", "ledger/2"])
    assert folder.names("ledger") == []
