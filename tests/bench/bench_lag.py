"""What one look at the lag of 100 jobs with 10,000 partitions costs, beside a loop that asks for each partition alone.

    .venv/bin/python -m pytest -s -m bench tests/bench/bench_lag.py

Prints a table. Fails on wrong figures only, never on time. MILLRACE_BENCH_JOBS and MILLRACE_BENCH_PARTITIONS make it
smaller. The loop is measured on a part of the partitions and scaled up, since all of them would take minutes; its
requests are reckoned, four for each partition, not counted.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Message, TopicPartition
from confluent_kafka.cimpl import KafkaError, NewTopic
from rich.console import Console
from rich.table import Table

from millrace.kafka.clients import admin, consumer, producer
from millrace.kafka.embedded import EmbeddedKafka
from millrace.kafka.positions import Positions, Reading
from millrace_lag.exposition import Renderer
from millrace_lag.polling import ClusterView, Poller
from millrace_lag.snapshots import snapshot
from millrace_lag.subjects import Door, Subject

pytestmark = pytest.mark.bench

JOBS = int(os.environ.get("MILLRACE_BENCH_JOBS", "100"))
PARTITIONS = int(os.environ.get("MILLRACE_BENCH_PARTITIONS", "100"))
RECORDS = 10
LOOKED_AT_ALONE = 100
ROUNDS = 5


@dataclass(frozen=True)
class Cost:
    """What something took, and how many requests of ours it was."""

    seconds: float
    cpu_seconds: float
    requests: float


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with a topic for each job; every job is behind in every partition."""
    with EmbeddedKafka(tmp_path_factory.mktemp("crowded"), heap="1g") as kafka:
        _make_topics(kafka.bootstrap)
        _write(kafka.bootstrap)
        _commit(kafka.bootstrap, RECORDS // 2)
        yield kafka.bootstrap


def topic(job: int) -> str:
    return f"bench-{job}"


def group(job: int) -> str:
    return f"millrace.bench.job-{job}"


def subjects(bootstrap: str) -> tuple[Subject, ...]:
    return tuple(Subject("bench", f"job-{job}", bootstrap, {topic(job): "earliest"}) for job in range(JOBS))


def _make_topics(bootstrap: str) -> None:
    client = admin(bootstrap)
    for first in range(0, JOBS, 10):
        new = [NewTopic(topic(job), PARTITIONS, 1) for job in range(first, min(JOBS, first + 10))]
        for future in client.create_topics(new, operation_timeout=120, request_timeout=120).values():
            future.result(180)
    _wait(lambda: _has_leaders(bootstrap), "leaders of all partitions")


def _has_leaders(bootstrap: str) -> bool:
    topics = admin(bootstrap).list_topics(timeout=60).topics
    found = [one for name, meta in topics.items() if name.startswith("bench-") for one in meta.partitions.values()]
    return len(found) == JOBS * PARTITIONS and all(one.leader >= 0 for one in found)


def _write(bootstrap: str) -> None:
    failed: list[KafkaError] = []

    def done(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    writer = producer(bootstrap, **{"linger.ms": 200, "queue.buffering.max.messages": 2_000_000})
    for job in range(JOBS):
        for number in range(RECORDS * PARTITIONS):
            writer.produce(topic(job), b"v" * 200, partition=number % PARTITIONS, on_delivery=done)
        writer.poll(0)
    assert writer.flush(300) == 0
    assert not failed


def _commit(bootstrap: str, offset: int) -> None:
    client = admin(bootstrap)
    asked = {
        job: ConsumerGroupTopicPartitions(
            group(job), [TopicPartition(topic(job), number, offset) for number in range(PARTITIONS)]
        )
        for job in range(JOBS)
    }
    _wait(lambda: _committed(client, asked[0]), "the broker to keep positions", 120)
    for one in asked.values():
        _wait(lambda one=one: _committed(client, one), "the commit")  # type: ignore[misc]


def _committed(client: object, asked: ConsumerGroupTopicPartitions) -> bool:
    future = client.alter_consumer_group_offsets([asked])[asked.group_id]  # type: ignore[attr-defined]
    if future.exception(120) is not None:
        return False
    return all(one.error is None for one in future.result().topic_partitions)


def _wait(condition: Callable[[], bool], what: str, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.2)


def _cost(work: Callable[[], object], requests: Callable[[], float]) -> Cost:
    before, began, cpu = requests(), time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - began, time.process_time() - cpu, requests() - before)


def _best(costs: list[Cost]) -> Cost:
    return min(costs, key=lambda one: one.seconds)


def _alone(bootstrap: str) -> Cost:
    """Position, ends and record of each partition, one question at a time, as a simple exporter does it."""
    looked_at = [(number % 2, number // 2) for number in range(min(LOOKED_AT_ALONE, JOBS * PARTITIONS))]
    settings = {"enable.auto.commit": False, "fetch.wait.max.ms": 10}
    askers = {job: consumer(bootstrap, group(job), **settings) for job, _ in looked_at}
    for asker in askers.values():
        asker.list_topics(topic(0), timeout=30)

    def work() -> None:
        for job, number in looked_at:
            (committed,) = askers[job].committed([TopicPartition(topic(job), number)], timeout=30)
            askers[job].get_watermark_offsets(TopicPartition(topic(job), number), timeout=30)
            askers[job].assign([committed])
            assert askers[job].poll(30) is not None

    part = _cost(work, lambda: 0)
    for asker in askers.values():
        asker.close()
    scale = JOBS * PARTITIONS / len(looked_at)
    return Cost(part.seconds * scale, part.cpu_seconds * scale, 4 * JOBS * PARTITIONS)


def test_one_poll(crowded: str) -> None:
    groups = {one.group: one.topics for one in subjects(crowded)}
    positions, readings = Positions(crowded, 120), list[Reading]()
    asked: Callable[[], float] = lambda: sum(positions.asked.values())  # noqa: E731
    positions.read({})  # connects

    cold, warm = [], []
    for turn in range(ROUNDS):
        _commit(crowded, turn)  # every job moved, so the time of every record has to be read
        cold.append(_cost(lambda: readings.append(positions.read(groups)), asked))
        _is_right(readings[-1], turn)
        warm.append(_cost(lambda: readings.append(positions.read(groups)), asked))
    positions.close()
    poller = Poller(Door(crowded), 120)
    poller.poll(subjects(crowded))
    whole = [_cost(lambda: poller.poll(subjects(crowded)), lambda: 0) for _ in range(ROUNDS)]
    rendering = _rendering(poller.view)
    poller.close()
    _print(_best(cold), _best(warm), _best(whole), _alone(crowded), rendering)


def _is_right(reading: Reading, offset: int) -> None:
    places = [one for standing in reading.groups.values() for one in standing.places.values()]
    assert len(places) == JOBS * PARTITIONS
    assert {one.records for one in places} == {RECORDS - offset}
    assert not any(standing.untimed for standing in reading.groups.values())
    assert sum(len(standing.written) for standing in reading.groups.values()) == JOBS * PARTITIONS


def _rendering(view: ClusterView) -> Cost:
    renderer = Renderer()
    renderer.render(snapshot([view], 1.0))
    return _best([_cost(lambda: renderer.render(snapshot([view], 1.0)), lambda: 0) for _ in range(ROUNDS)])


def _print(cold: Cost, warm: Cost, whole: Cost, alone: Cost, rendering: Cost) -> None:
    table = Table(title=f"{JOBS} jobs, {JOBS * PARTITIONS} partitions, every one behind; best of {ROUNDS}")
    for column in ("", "seconds", "CPU seconds", "requests", "times as long"):
        table.add_column(column, justify="right" if column else "left")
    rows = {
        "one poll, every job moved": cold,
        "one poll, no job moved": warm,
        "the same with verdicts and margins": whole,
        f"one partition at a time (from {min(LOOKED_AT_ALONE, JOBS * PARTITIONS)})": alone,
        "text for Prometheus": rendering,
    }
    for name, cost in rows.items():
        ratio = f"{cost.seconds / cold.seconds:.1f}"
        count = f"{cost.requests:.0f}" if cost.requests else ""
        table.add_row(name, f"{cost.seconds:.3f}", f"{cost.cpu_seconds:.3f}", count, ratio)
    Console(width=120).print(table)
