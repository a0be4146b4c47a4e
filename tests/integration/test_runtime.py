"""What a job does beside its windows: steps, tables, start positions, idle partitions, refusals. Small logs."""

import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millrace.errors import UserError
from millrace.kafka.clients import admin, producer
from tests.integration.matrix.topics import read_topic
from tests.integration.postgres import Server, postgres  # noqa: F401 - a fixture

pytestmark = pytest.mark.integration

RunJob = Callable[..., dict[str, Any]]
START = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW = {"type": "tumbling", "size": "10s", "by": ["user"], "aggregates": {"n": "count(*)"}}


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


@dataclass
class Stage:
    """A job of its own with its topics, and a way to write events for it."""

    broker: str
    partitions: int = 1
    name: str = field(default_factory=lambda: f"r{uuid.uuid4().hex[:10]}")

    def __post_init__(self) -> None:
        client = admin(self.broker)
        topics = [NewTopic(f"{self.name}-{part}", self.partitions, 1) for part in ("in", "out", "bad")]
        for future in client.create_topics(topics).values():
            future.result(timeout=60)

    def write(
        self, events: Iterable[dict[str, Any] | bytes], partition: int = 0, written_at: datetime | None = None
    ) -> None:
        writer = producer(self.broker)
        millis = int(written_at.timestamp() * 1000) if written_at else 0
        for event in events:
            value = event if isinstance(event, bytes) else json.dumps(event).encode()
            writer.produce(f"{self.name}-in", value, partition=partition, timestamp=millis)
        assert writer.flush(60) == 0

    def out(self) -> list[dict[str, Any]]:
        return [json.loads(one.value or b"null") for one in read_topic(self.broker, f"{self.name}-out")]

    def job(self, transform: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
        source: dict[str, Any] = {
            "name": "views",
            "topic": f"{self.name}-in",
            "schema": "user string, n bigint, at timestamp",
        }
        source |= {"eventTime": {"column": "at"}, **spec.pop("source", {})}
        whole = {
            "kafka": {"bootstrapServers": self.broker},
            "sources": [source],
            "malformed": {"topic": f"{self.name}-bad"},
            "transform": transform,
            "sinks": [{"topic": f"{self.name}-out"}],
            **spec,
        }
        head = {"apiVersion": "millrace.io/v1alpha1", "kind": "StreamJob", "metadata": {"name": self.name}}
        return {**head, "spec": whole}


def shout(frame: DataFrame) -> DataFrame:
    """A user's own step."""
    return frame.withColumn("user", F.upper("user"))


def fail(frame: DataFrame) -> DataFrame:
    raise ValueError("the user's own mistake")


def count(frame: DataFrame) -> DataFrame:
    return frame.groupBy("user").count()


HERE = "tests.integration.test_runtime"


def test_without_a_step_events_go_through_as_they_were_read(broker: str, run_job: RunJob, tmp_path: Path) -> None:
    stage = Stage(broker)
    stage.write([{"user": "a", "n": 1, "at": at(1)}, b"{", {"user": None, "at": at(0)}])
    report = run_job(stage.job([]), tmp_path)
    assert stage.out() == [
        {"user": "a", "n": 1, "at": "2026-01-01T00:00:01.000000Z"},
        {"user": None, "n": None, "at": "2026-01-01T00:00:00.000000Z"},
    ]
    assert report["sources"]["views"] | {"topic": ""} == {
        "topic": "", "read": 3, "malformed": 1, "future": 0, "on_time": 2, "late": 0, "dropped": 0, "aside": 0,
        "corrected": 0, "late_idle": 0, "windows_missed": 0, "lost": 0,
    }  # fmt: skip
    assert report["sinks"][f"{stage.name}-out"]["written"] == 2
    assert report["side"]["malformed"] == 1


def test_steps_before_and_after_a_window(broker: str, run_job: RunJob, tmp_path: Path) -> None:
    stage = Stage(broker)
    stage.write([{"user": "a", "n": n, "at": at(n)} for n in range(9)] + [{"user": "z", "n": 1, "at": at(100)}])
    steps: list[dict[str, Any]] = [
        {"sql": "SELECT user, n * 10 AS tens, _event FROM views WHERE n % 2 = 0"},
        {"python": {"function": f"{HERE}:shout"}},
        {"window": {**WINDOW, "aggregates": {"tens": "sum(tens)", "users": "count(DISTINCT user)"}}},
        {"sql": "SELECT user, tens, users, tens > 100 AS much FROM input"},
    ]
    run_job(stage.job(steps), tmp_path)
    assert stage.out() == [{"user": "A", "tens": 200, "users": 1, "much": True}]


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ({"sql": "SELECT user, count(*) AS n FROM views GROUP BY user"}, r"transform\[0\].sql: GROUP BY would see"),
        ({"sql": "SELECT user, rand() AS r, _event FROM views"}, r"transform\[0\].sql: the step gives another result"),
        ({"sql": "SELECT usr FROM views"}, r"transform\[0\].sql: .*usr"),
        ({"sql": "SELECT user FROM views"}, r"transform\[0\]: the step before a window must keep the column _event"),
        ({"python": {"function": f"{HERE}:count"}}, r"transform\[0\].python: GROUP BY would see"),
        ({"python": {"function": "no.such:thing"}}, r"module 'no.such' cannot be imported"),
        ({"python": {"function": f"{HERE}:nothing"}}, r"has no function 'nothing'"),
    ],
)
def test_a_step_that_cannot_be_exact_is_refused_before_anything_runs(
    broker: str, run_job: RunJob, tmp_path: Path, step: dict[str, Any], sentence: str
) -> None:
    stage = Stage(broker)
    window = {**WINDOW, "by": [], "aggregates": {"n": "count(*)"}}
    with pytest.raises(UserError, match=sentence):
        run_job(stage.job([step, {"window": window}]), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_window_whose_aggregate_is_wrong_is_refused(broker: str, run_job: RunJob, tmp_path: Path) -> None:
    window = {**WINDOW, "aggregates": {"n": "sum(nn)"}}
    with pytest.raises(UserError, match=r"spec.transform\[0\].window: .*nn"):
        run_job(Stage(broker).job([{"window": window}]), tmp_path)


def test_latest_reads_only_what_comes_after_the_start(broker: str, run_job: RunJob, tmp_path: Path) -> None:
    stage = Stage(broker)
    job = stage.job([], source={"startFrom": "latest"})
    stage.write([{"user": "old", "at": at(0)}])
    run_job(job, tmp_path)
    stage.write([{"user": "new", "at": at(1)}])
    run_job(job, tmp_path)
    assert [row["user"] for row in stage.out()] == ["new"]


def test_a_time_to_start_from_is_the_time_of_writing(broker: str, run_job: RunJob, tmp_path: Path) -> None:
    """Each partition starts at its first record written then or later, and one that has none yet at its end."""
    stage = Stage(broker, partitions=2)
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    for minutes in (-1, 0, 1, -2):
        stage.write([{"user": f"{minutes}", "at": at(-minutes)}], 0, start + timedelta(minutes=minutes))
    stage.write([{"user": "old", "at": at(0)}], 1, start - timedelta(seconds=1))
    job = stage.job([], source={"startFrom": start.strftime("%Y-%m-%dT%H:%M:%SZ")})
    report = run_job(job, tmp_path)
    assert [row["user"] for row in stage.out()] == ["0", "1", "-2"], "what is written after it counts, whenever it says"
    assert (report["sources"]["views"]["read"], report["sources"]["views"]["lost"]) == (3, 0)
    stage.write([{"user": "new", "at": at(1)}], 1)
    run_job(job, tmp_path)
    assert sorted(row["user"] for row in stage.out()) == ["-2", "0", "1", "new"]


def test_a_partition_that_went_idle_no_longer_holds_windows_open(broker: str, run_job: RunJob, tmp_path: Path) -> None:
    """The one thing that depends on when something was read; so it is counted apart."""
    stage = Stage(broker, partitions=2)
    job = stage.job([{"window": WINDOW}], stragglers={"idleAfter": "1ms"})
    stage.write([{"user": "a", "at": at(1)}], partition=0)
    stage.write([{"user": "b", "at": at(2)}], partition=1)
    run_job(job, tmp_path)
    for second in (30, 31):  # partition 1 is silent in the first of these batches, and given up in the second
        stage.write([{"user": "a", "at": at(second)}], partition=0)
        run_job(job, tmp_path)
    assert sorted((row["user"], row["n"]) for row in stage.out()) == [("a", 1), ("b", 1)]
    stage.write([{"user": "b", "at": at(3)}, {"user": "b", "at": at(35)}], partition=1)
    counts = run_job(job, tmp_path)["sources"]["views"]
    assert (counts["late"], counts["late_idle"], counts["dropped"]) == (1, 1, 1)


def test_state_goes_when_its_windows_are_done(broker: str, run_job: RunJob, tmp_path: Path) -> None:
    stage = Stage(broker)
    job = stage.job([{"window": WINDOW}], source={"maxRecordsPerBatch": 5})
    stage.write([{"user": "a", "at": at(n)} for n in range(200)])
    run_job(job, tmp_path)
    assert sum(row["n"] for row in stage.out()) == 190
    assert len(list((tmp_path / "state").iterdir())) <= 4


def test_a_table_holds_the_latest_row_of_each_key(
    broker: str,
    run_job: RunJob,
    tmp_path: Path,
    postgres: Server,  # noqa: F811 - the fixture
) -> None:
    stage = Stage(broker)
    table = f"visits_{stage.name}"
    sink = {"postgres": {"secret": {"name": "db"}, "table": table, "key": ["user", "window_start"]}}
    session = {"type": "session", "gap": "10s", "by": ["user"], "aggregates": {"n": "count(*)", "most": "max(n)"}}
    stragglers = {"policy": "correct", "allowedLateness": "1h"}
    job = stage.job([{"window": session}], sinks=[sink], stragglers=stragglers)
    environment = {"MILLRACE_SECRET_DB": postgres.url}
    stage.write(
        [{"user": "a", "n": 5, "at": at(20)}, {"user": None, "n": 1, "at": at(50)}, {"user": "z", "at": at(200)}]
    )
    run_job(job, tmp_path, environment=environment)
    with postgres.connect() as connection:
        rows = connection.execute(f'SELECT "user", n, most, revision FROM {table} ORDER BY 1').fetchall()  # noqa: S608
    assert rows == [("a", 1, 5, 0), (None, 1, 1, 0)]
    stage.write([{"user": "a", "n": 9, "at": at(15)}])
    report = run_job(job, tmp_path, environment=environment)
    with postgres.connect() as connection:
        rows = connection.execute(f'SELECT "user", n, most, revision FROM {table} ORDER BY 1').fetchall()  # noqa: S608
        positions = connection.execute("SELECT max(batch) FROM millrace_positions").fetchone()
    assert rows == [("a", 2, 9, 1), (None, 1, 1, 0)], "the session that began later is withdrawn"
    assert positions == (1,)
    assert report["sources"]["views"]["corrected"] == 1


def test_a_new_state_writes_again_what_the_old_one_wrote(broker: str, run_job: RunJob, tmp_path: Path) -> None:
    """Batch numbers start anew with new state; a sink must not take them for the old ones."""
    stage = Stage(broker)
    stage.write([{"user": "a", "at": at(1)}, {"user": "a", "at": at(100)}])
    run_job(stage.job([{"window": WINDOW}]), tmp_path)
    changed = stage.job([{"window": {**WINDOW, "size": "20s"}}], upgrade={"mode": "restart-empty"})
    run_job(changed, tmp_path)
    assert [row["window_end"] for row in stage.out()] == ["2026-01-01T00:00:10.000000Z", "2026-01-01T00:00:20.000000Z"]
