"""Logs into a real broker, byte for byte and with their own timestamps, and what jobs wrote back out of it."""

import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from confluent_kafka.cimpl import NewTopic

from millrace.kafka.clients import admin, consumer, producer
from tests.oracle.cases import Case
from tests.oracle.model import Log
from tests.oracle.reading import Delivered

SECONDS = 60.0
OUTPUT_PARTITIONS = 3
# The logs are written as of a fixed day, which the broker must neither refuse nor delete, whatever day it is.
KEEP_TIMES = {
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "retention.ms": "-1",
}


def make_topics(bootstrap: str, case: Case) -> None:
    """The case's topics, the input with as many partitions as its log."""
    written = [case.output_topic, case.malformed_topic, *([case.aside_topic] if case.aside_topic else [])]
    topics = [NewTopic(case.input_topic, len(case.log.partitions), 1, config=KEEP_TIMES)]
    topics += [NewTopic(name, OUTPUT_PARTITIONS, 1) for name in written]
    client = admin(bootstrap)
    for future in client.create_topics(topics).values():
        future.result(timeout=SECONDS)


def write_log(bootstrap: str, log: Log) -> None:
    """Every record of a fresh topic at exactly its partition and offset, or an error."""
    writer = producer(bootstrap, **{"enable.idempotence": True, "linger.ms": 5})
    wrong: list[str] = []

    def delivered(offset: int) -> Any:
        def note(error: KafkaError | None, message: Any) -> None:
            if error is not None or message.offset() != offset:
                wrong.append(f"{error or message.offset()} instead of offset {offset}")

        return note

    for record in log.records():
        writer.produce(
            record.topic,
            record.value,
            record.key,
            record.partition,
            on_delivery=delivered(record.offset),
            timestamp=record.timestamp // 1_000,
        )
        writer.poll(0)
    assert writer.flush(SECONDS) == 0
    assert wrong == []


def read_topic(bootstrap: str, topic: str) -> list[Delivered]:
    """Everything that a reader of committed records gets, from the beginning to the end of each partition."""
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True, "enable.auto.commit": False}
    reader = consumer(bootstrap, f"reader-{topic}", **settings)
    try:
        partitions = reader.list_topics(topic, timeout=SECONDS).topics[topic].partitions
        reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        return _read_to_end(reader, set(partitions))
    finally:
        reader.close()


def _read_to_end(reader: Any, unfinished: set[int]) -> list[Delivered]:
    found: list[Delivered] = []
    deadline = time.monotonic() + SECONDS
    while unfinished:
        assert time.monotonic() < deadline, f"partitions {unfinished} could not be read to their end"
        for message in reader.consume(500, timeout=0.5):
            error = message.error()
            if error is None:
                found.append(_delivered(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(message.partition())
            else:
                raise KafkaException(error)
    return found


def _delivered(message: Any) -> Delivered:
    headers, (_, milliseconds) = tuple(message.headers() or ()), message.timestamp()
    place = (message.partition(), message.offset(), milliseconds * 1_000)
    return Delivered(message.key(), message.value(), headers, *place)


def committed(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    """The group's positions in one topic, by partition."""
    reader = consumer(bootstrap, group, **{"enable.auto.commit": False})
    try:
        listed = reader.list_topics(topic, timeout=SECONDS).topics[topic].partitions
        found = reader.committed([TopicPartition(topic, number) for number in listed], timeout=SECONDS)
        return {one.partition: one.offset for one in found}
    finally:
        reader.close()
