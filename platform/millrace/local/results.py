"""A look at what a job has written: the newest results of a topic, as an ordinary consumer reads them."""

import json
import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition

from millrace.kafka.clients import REQUEST_SECONDS, consumer

LOOK_SECONDS = 20.0
READER_GROUP = "millrace.reader"  # never commits and never joins; a consumer must have some group
SETTINGS = {"enable.auto.commit": False, "isolation.level": "read_committed", "enable.partition.eof": True}

Result = dict[str, Any]


def read_results(bootstrap: str, topic: str) -> list[Result]:
    """The last result of each key; one that was withdrawn is left out. Results without a key are all kept."""
    reader = consumer(bootstrap, READER_GROUP, **SETTINGS)
    try:
        partitions = reader.list_topics(topic, timeout=REQUEST_SECONDS).topics[topic].partitions
        reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        return _last_of_each_key(reader, left=len(partitions))
    finally:
        reader.close()


def newest(results: list[Result], count: int) -> list[Result]:
    """Those whose window ended last; within a window the largest first."""
    return sorted(results, key=lambda one: (str(one.get("window_end", "")), _first_number(one)), reverse=True)[:count]


def _first_number(result: Result) -> float:
    return next((float(value) for value in result.values() if isinstance(value, int | float)), 0.0)


def _last_of_each_key(reader: Any, left: int) -> list[Result]:
    last: dict[Any, Result | None] = {}
    deadline = time.monotonic() + LOOK_SECONDS
    while left and time.monotonic() < deadline:
        for message in reader.consume(500, timeout=0.5):
            if message.error() is not None:
                left -= message.error().code() == KafkaError._PARTITION_EOF  # noqa: SLF001 - its public name for it
                continue
            key = message.key() or (message.partition(), message.offset())
            last[key] = json.loads(message.value()) if message.value() is not None else None
    return [result for result in last.values() if result is not None]
