"""Lag read from a real broker, for groups whose positions the test commits itself: every way a job can stand."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import NewPartitions
from confluent_kafka.cimpl import NewTopic

from millrace.kafka.clients import admin, consumer, producer
from millrace.kafka.commits import Note, note
from millrace.kafka.ends import read_offsets
from millrace.kafka.positions import Lag, Positions, Standing, lag
from millrace.kafka.retention import keeps
from millrace.kafka.wire import Wire
from millrace.lag import Start

pytestmark = pytest.mark.integration

BROKER_TIME = {"message.timestamp.type": "LogAppendTime"}


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.1)


class Log:
    """A topic of the test's own, and a group that stands somewhere in it."""

    def __init__(self, bootstrap: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        self.bootstrap, self.name, self.group = bootstrap, unique("lag"), unique("millrace.test")
        self.admin = admin(bootstrap)
        self.make(partitions, config or {})

    def make(self, partitions: int, config: Mapping[str, str]) -> None:
        made = self.admin.create_topics([NewTopic(self.name, partitions, 1, config=dict(config))])
        made[self.name].result(30)
        wait_for(lambda: self.name in self.admin.list_topics(timeout=10).topics, "the topic")

    def write(
        self, count: int = 1, at: float | None = None, partition: int = 0, step_seconds: float = 0.0, **settings: Any
    ) -> None:
        """Records whose time is `at`, and each a step later."""
        writer = producer(self.bootstrap, **settings)
        for number in range(count):
            when = 0 if at is None else round((at + number * step_seconds) * 1000)
            writer.produce(self.name, value=b"x" * 100, key=str(number), partition=partition, timestamp=when)
        assert writer.flush(30) == 0

    def commit(self, offset: int, partition: int = 0, text: str = "") -> None:
        wait_for(lambda: self._commit(TopicPartition(self.name, partition, offset, text)), "the commit")

    def _commit(self, one: TopicPartition) -> bool:
        """False while the broker still makes the topic in which it keeps positions."""
        answer = self.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(self.group, [one])])
        return all(done.error is None for done in answer[self.group].result(30).topic_partitions)

    def delete_before(self, offset: int, partition: int = 0) -> None:
        for future in self.admin.delete_records([TopicPartition(self.name, partition, offset)]).values():
            future.result(30)

    def standing(self, start: Start = "earliest") -> Standing:
        positions = Positions(self.bootstrap)
        try:
            return positions.read({self.group: {self.name: start}}).groups[self.group]
        finally:
            positions.close()

    def lag(self) -> Lag:
        return lag(self.bootstrap, self.group, [self.name])


@pytest.fixture
def log(broker: str) -> Log:
    return Log(broker)


@pytest.fixture
def positions(broker: str) -> Iterator[Positions]:
    made = Positions(broker)
    yield made
    made.close()


def test_caught_up(log: Log) -> None:
    log.write(5)
    log.commit(5)
    assert log.lag() == Lag(0, 0.0)


def test_behind_by_records_and_by_the_age_of_the_record_at_the_position(log: Log) -> None:
    began = time.time()
    log.write(10, at=began - 1000, step_seconds=10)
    log.commit(4)
    found = log.lag()
    assert found.records == 6
    assert found.seconds == pytest.approx(time.time() - (began - 960), abs=1)


def test_lag_of_a_dead_job_goes_on_growing(log: Log, positions: Positions) -> None:
    began = time.time()
    log.write(1, at=began - 100)
    log.commit(0)
    first = positions.lag(log.group, [log.name])
    wait_for(lambda: time.time() - began > 2, "two seconds")
    log.write(3)
    second = positions.lag(log.group, [log.name])
    assert (first.records, second.records) == (1, 4)
    assert second.seconds - first.seconds == pytest.approx(2, abs=1)


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "zstd"])
@pytest.mark.parametrize("offset", [0, 1, 37, 99])
def test_the_time_is_exact_inside_a_batch_also_a_compressed_one(broker: str, codec: str, offset: int) -> None:
    """One batch whose records are a second apart: its header alone does not tell."""
    log = Log(broker)
    began = float(round(time.time()))
    settings: dict[str, Any] = {"compression.type": codec, "linger.ms": 500, "batch.num.messages": 100}
    log.write(100, at=began - 200, step_seconds=1, **settings)
    log.commit(offset)
    ((_, written),) = log.standing().written.items()
    assert written.at == pytest.approx(began - 200 + offset, abs=0.001)


def test_batches_that_are_larger_than_what_is_asked_for_first(broker: str) -> None:
    log = Log(broker, partitions=3)
    began = time.time()
    writer = producer(broker)
    for partition in range(3):
        writer.produce(log.name, b"y" * 300_000, partition=partition, timestamp=round((began - 50 - partition) * 1000))
    assert writer.flush(30) == 0
    found = log.standing()
    ages = {number: began - written.at for (_, number), written in found.written.items()}
    assert ages == pytest.approx({0: 50, 1: 51, 2: 52}, abs=0.01)
    assert not found.untimed


def test_the_broker_s_own_time(broker: str) -> None:
    log = Log(broker, config=BROKER_TIME)
    log.write(3, at=1000.0)
    assert log.lag().seconds < 10


def test_retention_overtook_the_position(log: Log) -> None:
    log.write(10)
    log.commit(2)
    log.delete_before(7)
    found = log.standing().places[log.name, 0]
    assert (found.position, found.records, found.gap) == (7, 3, 5)


def test_retention_took_everything(log: Log) -> None:
    log.write(10)
    log.commit(2)
    log.delete_before(10)
    found = log.standing().places[log.name, 0]
    assert (found.records, found.gap) == (0, 8)


def test_a_topic_made_anew(log: Log) -> None:
    log.write(10)
    log.commit(10)
    log.admin.delete_topics([log.name])[log.name].result(30)
    wait_for(lambda: log.name not in log.admin.list_topics(timeout=10).topics, "the topic to go")
    log.make(1, {})
    log.write(3)
    assert log.lag().records == 3
    log.commit(10)  # as a job does that still believes in the old topic
    found = log.standing().places[log.name, 0]
    assert (found.records, found.beyond) == (3, True)


def test_times_of_a_topic_made_anew_are_read_anew(log: Log, positions: Positions) -> None:
    began = time.time()
    log.write(5, at=began - 5000)
    log.commit(1)
    assert positions.lag(log.group, [log.name]).seconds > 4900
    log.admin.delete_topics([log.name])[log.name].result(30)
    wait_for(lambda: log.name not in log.admin.list_topics(timeout=10).topics, "the topic to go")
    log.make(1, {})
    log.write(3, at=began - 70)
    log.commit(1)
    assert positions.lag(log.group, [log.name]).seconds == pytest.approx(time.time() - began + 70, abs=1)


def test_partitions_that_were_added_count_from_their_start(log: Log) -> None:
    log.write(5)
    log.commit(5)
    log.admin.create_partitions([NewPartitions(log.name, 3)])[log.name].result(30)
    wait_for(lambda: len(log.admin.list_topics(log.name, timeout=10).topics[log.name].partitions) == 3, "partitions")
    log.write(4, partition=2)
    found = log.standing(start="latest")
    assert {number: one.records for (_, number), one in found.places.items()} == {0: 0, 1: 0, 2: 4}


@pytest.mark.parametrize(("start", "records"), [("earliest", 10), ("latest", 0), (1_700_000_050.0, 5)])
def test_a_job_without_any_commit_stands_where_it_will_begin(log: Log, start: Start, records: int) -> None:
    log.write(10, at=1_700_000_000.0, step_seconds=10)
    assert log.standing(start).places[log.name, 0].records == records


def test_a_start_time_after_everything_is_the_end(log: Log) -> None:
    log.write(10, at=1_700_000_000.0)
    assert log.standing(1_800_000_000.0).places[log.name, 0].records == 0


def test_empty_partitions_have_no_lag(broker: str) -> None:
    log = Log(broker, partitions=3)
    assert log.lag() == Lag(0, 0.0)
    log.commit(0)
    assert log.lag() == Lag(0, 0.0)


def test_a_topic_that_does_not_exist_has_no_partitions(log: Log, positions: Positions) -> None:
    assert positions.lag(log.group, ["there-is-none"]) == Lag(0, 0.0)


def test_markers_of_transactions_are_no_records(log: Log) -> None:
    """After a transaction the log's end is one behind its last record: nobody has to read that."""
    writer = producer(log.bootstrap, **{"transactional.id": log.name})
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(log.name, b"x")
    writer.commit_transaction(30)
    log.commit(1)
    found = log.standing()
    assert found.places[log.name, 0].log.end == 2
    assert (found.places[log.name, 0].records, found.untimed) == (0, frozenset())
    log.commit(0)
    assert log.standing().places[log.name, 0].records == 2


def test_holes_of_compaction(broker: str) -> None:
    """The record at the position is gone: the next one that is left tells the age."""
    settings = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    log = Log(broker, config=settings)
    began = time.time()
    log.write(20, at=began - 1000)
    log.write(20, at=began - 300)
    wait_for(lambda: time.time() - began > 0.3, "the segment to be old enough")
    log.write(1, at=began)  # the cleaner never touches the segment that is written to
    log.commit(0)
    wait_for(lambda: first_offset(log) >= 20, "compaction", seconds=120)
    found = log.standing()
    assert found.places[log.name, 0].position == 0
    assert found.written[log.name, 0].at == pytest.approx(began - 300, abs=0.01)


def first_offset(log: Log) -> int:
    reader = consumer(log.bootstrap, log.group + "-look", **{"enable.auto.commit": False})
    try:
        reader.assign([TopicPartition(log.name, 0, 0)])
        message = reader.poll(10)
        return -1 if message is None else int(message.offset() or 0)
    finally:
        reader.close()


def test_jobs_on_one_topic_stand_at_different_places(broker: str, positions: Positions) -> None:
    log = Log(broker)
    began = time.time()
    log.write(10, at=began - 100, step_seconds=10)
    groups = {}
    for offset in (1, 5, 9, 10):
        log.group = unique("millrace.test")
        log.commit(offset)
        groups[log.group] = offset
    reading = positions.read({group: {log.name: "earliest"} for group in groups})
    for group, offset in groups.items():
        standing = reading.groups[group]
        assert standing.places[log.name, 0].records == 10 - offset
        if offset < 10:
            assert standing.written[log.name, 0].at == pytest.approx(began - 100 + 10 * offset, abs=0.01)


def test_the_ordinary_client_gives_the_same_figures(broker: str) -> None:
    """What is used where brokers ask for a login."""
    log = Log(broker, partitions=12)
    for number in range(6):
        log.write(5, at=time.time() - 100, step_seconds=10, partition=number)
        log.commit(number, partition=number)
    answers = []
    for plain in (True, False):
        positions = Positions(broker, wired=plain)
        try:
            answers.append(positions.read({log.group: {log.name: 1_700_000_000.0}}).groups[log.group])
        finally:
            positions.close()
    fast, slow = answers
    assert fast.places == slow.places
    assert {one: written.at for one, written in fast.written.items()} == {
        one: written.at for one, written in slow.written.items()
    }
    assert len(slow.written) == 5


def test_the_note_of_a_commit_comes_back(log: Log) -> None:
    log.commit(0, text=note(1700000000.5, 1.25, 3))
    (commit,) = log.standing().commits.values()
    assert commit.note == Note(1700000000.5, 1.25, 3)


def test_requests_do_not_grow_with_partitions(broker: str) -> None:
    counts = {}
    for partitions in (10, 100):
        log = Log(broker, partitions=partitions)
        for number in range(partitions):
            log.write(1, partition=number) if number < 3 else None
        log.commit(0)
        wait_for(lambda log=log, count=partitions: len(first_answers(log)) == count, "leaders")  # type: ignore[misc]
        positions = Positions(broker)
        try:
            positions.read({log.group: {log.name: "earliest"}})
            counts[partitions] = dict(positions.asked)
        finally:
            positions.close()
    assert counts[10] == counts[100]


def first_answers(log: Log) -> dict[tuple[str, int], int]:
    """A partition that was just made has no leader for a moment, and is then asked for once more."""
    wire, listed = Wire(), log.admin.list_topics(timeout=10)
    wanted = dict.fromkeys(((log.name, number) for number in listed.topics[log.name].partitions), OFFSET_END)
    leaders = dict.fromkeys(wanted, next((str(one.host), one.port) for one in listed.brokers.values()))
    try:
        return read_offsets(wire, wanted, leaders, time.monotonic() + 10)
    finally:
        wire.close()


def test_times_are_asked_for_once(log: Log, positions: Positions) -> None:
    log.write(5)
    log.commit(2)
    positions.lag(log.group, [log.name])
    asked = positions.asked["times"]
    positions.lag(log.group, [log.name])
    assert positions.asked["times"] == asked


def test_retention_settings(broker: str) -> None:
    log = Log(broker, config={"retention.ms": "60000", "retention.bytes": "1000"})
    compacted = Log(broker, config={"cleanup.policy": "compact"})
    found = keeps(log.admin, [log.name, compacted.name, "there-is-none"])
    assert (found[log.name].seconds, found[log.name].bytes) == (60.0, 1000.0)
    assert found[compacted.name].seconds == float("inf")
    assert "there-is-none" not in found
