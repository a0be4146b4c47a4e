"""What exactness costs: our job beside the same query in plain Spark, over the same topic, one after the other.

    .venv/bin/python -m pytest -s -m bench tests/bench/bench_runtime.py

Prints a table. Fails on wrong figures only, never on time. MILLRACE_BENCH_EVENTS makes it smaller or larger. Each
measurement is repeated, in turn with the one it is compared with, and the best of each counts: other load on the
machine only ever makes a run slower.
"""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from millrace.kafka.clients import admin, producer
from millrace.kafka.embedded import EmbeddedKafka
from millrace.resources.jobs import StreamJob
from millrace.resources.reading import parse_object
from millrace_jobs.runs import JobRun, Surroundings
from millrace_jobs.session import build_session

pytestmark = pytest.mark.bench

EVENTS = int(os.environ.get("MILLRACE_BENCH_EVENTS", "1000000"))
PARTITIONS = 4
SMALL_BATCHES = 30
ROUNDS = 3
SCHEMA = "user string, url string, n bigint, at timestamp"
START = 1_767_225_600_000


@dataclass(frozen=True)
class Input:
    """A topic, and how much of it one batch reads."""

    topic: str
    events: int
    per_batch: int


MANY = Input("events", EVENTS, EVENTS // 4)
SMALL = Input("small", 100 * SMALL_BATCHES, 100)


@dataclass(frozen=True)
class Bench:
    broker: str
    spark: SparkSession
    folder: Path

    def fresh(self) -> str:
        return f"b{uuid.uuid4().hex[:10]}"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with EmbeddedKafka(tmp_path_factory.mktemp("broker"), heap="1g") as kafka:
        _fill(kafka.bootstrap, MANY.topic, MANY.events)
        _fill(kafka.bootstrap, SMALL.topic, SMALL.events)
        spark = build_session("bench")
        yield Bench(kafka.bootstrap, spark, tmp_path_factory.mktemp("bench"))
        spark.stop()


def _fill(bootstrap: str, topic: str, number_of_events: int) -> None:
    """Twenty minutes of events in order, three in a hundred of them late by up to five minutes."""
    _make_topic(bootstrap, topic, PARTITIONS)
    writer = producer(
        bootstrap, **{"linger.ms": 50, "compression.type": "lz4", "queue.buffering.max.messages": 2_000_000}
    )
    for number in range(number_of_events):
        late = number * 7919 % 300_000 if number % 33 == 0 else 0
        at = START + number * 1_200_000 // number_of_events - late
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at // 1000))
        event = {
            "user": f"user-{number % 997}",
            "url": f"/p/{number % 50}",
            "n": number,
            "at": f"{seconds}.{at % 1000:03}Z",
        }
        writer.produce(topic, json.dumps(event).encode(), partition=number % PARTITIONS)
        if number % 10_000 == 0:
            writer.poll(0)
    assert writer.flush(120) == 0


def _make_topic(bootstrap: str, name: str, partitions: int) -> None:
    client = admin(bootstrap)
    client.create_topics([NewTopic(name, partitions, 1)])[name].result(timeout=60)


def _ours(bench: Bench, transform: list[dict[str, Any]], reads: Input = MANY, **spec: Any) -> dict[str, Any]:
    """Our job, from empty to caught up; returns its report."""
    name = bench.fresh()
    _make_topic(bench.broker, f"{name}-out", PARTITIONS)
    source = {"name": "events", "topic": reads.topic, "schema": SCHEMA, "eventTime": {"column": "at"}}
    whole = {
        "kafka": {"bootstrapServers": bench.broker},
        "sources": [{**source, "maxRecordsPerBatch": reads.per_batch}],
        "transform": transform,
        "sinks": [{"topic": f"{name}-out", "key": ["window_start", "url"] if transform else ["user"]}],
        **spec,
    }
    head = {"apiVersion": "millrace.io/v1alpha1", "kind": "StreamJob", "metadata": {"name": name}}
    job = parse_object({**head, "spec": whole})
    assert isinstance(job, StreamJob)
    run = JobRun(bench.spark, job, str(bench.folder / name), Surroundings(bench.broker))
    assert run.run(until_caught_up=True) is None
    run.close()
    report = run.status.as_json()
    assert report["sources"]["events"]["read"] == reads.events
    return report


def _stream(bench: Bench, reads: Input = MANY) -> DataFrame:
    options = {"subscribe": reads.topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(reads.per_batch)}
    options["kafka.bootstrap.servers"] = bench.broker
    records = bench.spark.readStream.format("kafka").options(**options).load()
    return records.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("e")).select("e.*")


def _finish(bench: Bench, frame: DataFrame, sink: str, **options: str) -> None:
    place = str(bench.folder / bench.fresh())
    writer = frame.writeStream.format(sink).options(**options).option("checkpointLocation", place)
    writer.outputMode("append").trigger(availableNow=True).start().awaitTermination()


def _spark_windows(bench: Bench, reads: Input = MANY) -> None:
    events = _stream(bench, reads).withWatermark("at", "30 seconds")
    counted = events.groupBy(F.window("at", "1 minute"), "url").count()
    rows = counted.select(F.to_json(F.struct("*")).alias("value"))
    topic = bench.fresh()
    _make_topic(bench.broker, topic, PARTITIONS)
    _finish(bench, rows, "kafka", **{"kafka.bootstrap.servers": bench.broker, "topic": topic})


def _spark_sink(bench: Bench) -> None:
    topic = bench.fresh()
    _make_topic(bench.broker, topic, PARTITIONS)
    rows = _stream(bench).select(F.col("user").alias("key"), F.to_json(F.struct("*")).alias("value"))
    _finish(bench, rows, "kafka", **{"kafka.bootstrap.servers": bench.broker, "topic": topic})


WINDOW = [{"window": {"type": "tumbling", "size": "1m", "by": ["url"], "aggregates": {"views": "count(*)"}}}]
DROP = {"delay": "30s"}
CORRECT = {"delay": "30s", "policy": "correct", "allowedLateness": "10m"}


def _best(*works: Callable[[], Any]) -> list[float]:
    """The best seconds of each, measured in turn; the first round only warms up."""
    best = [float("inf")] * len(works)
    for round_number in range(ROUNDS + 1):
        for index, work in enumerate(works):
            started = time.perf_counter()
            work()
            if round_number:
                best[index] = min(best[index], time.perf_counter() - started)
    return best


def _show(title: str, rows: list[tuple[str, float]], wanted: str) -> None:
    table = Table(title=f"{title}; wanted: {wanted}", title_justify="left")
    for column in ("what", "seconds", "events/s", "ratio"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for what, seconds in rows:
        table.add_row(what, f"{seconds:.2f}", f"{EVENTS / seconds:,.0f}", f"{rows[0][1] / seconds:.2f}")
    Console(width=110).print(table)


def test_windows_beside_plain_spark(bench: Bench) -> None:
    spark, drop, correct = _best(
        lambda: _spark_windows(bench),
        lambda: _ours(bench, WINDOW, stragglers=DROP),
        lambda: _ours(bench, WINDOW, stragglers=CORRECT),
    )
    rows = [("plain Spark, neither exact nor accounted", spark), ("drop, judged and accounted", drop)]
    _show("One-minute counts", rows, "at least 0.85")
    _show("Corrections", [("drop", drop), ("correct", correct)], "at least 0.50")


def test_the_exactly_once_sink_beside_sparks_own(bench: Bench) -> None:
    spark, ours = _best(lambda: _spark_sink(bench), lambda: _ours(bench, []))
    rows = [("Spark's sink, at least once", spark), ("ours, exactly once, judged and accounted", ours)]
    _show("Every event to a topic", rows, "at least 0.60")


def test_what_a_batch_costs_however_small(bench: Bench) -> None:
    spark, ours = _best(lambda: _spark_windows(bench, SMALL), lambda: _ours(bench, WINDOW, SMALL, stragglers=DROP))
    table = Table(title=f"{SMALL_BATCHES} batches of {SMALL.per_batch} events", title_justify="left")
    for column in ("what", "seconds a batch"):
        table.add_column(column, justify="left" if column == "what" else "right")
    table.add_row("plain Spark, neither exact nor accounted", f"{spark / SMALL_BATCHES:.3f}")
    table.add_row("drop, judged and accounted, exactly once", f"{ours / SMALL_BATCHES:.3f}")
    Console(width=110).print(table)
