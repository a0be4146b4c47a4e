"""Where consumer groups stand, asked by a consumer of the same group that never joins it and never commits.

Not by an admin client: its request for a group's offsets ends the whole process when the group's coordinator has moved.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import Consumer, TopicPartition

from millrace.kafka.clients import consumer
from millrace.kafka.security import Security
from millrace_operator.topics.state import Reader

SETTINGS = {"enable.auto.commit": False, "enable.auto.offset.store": False, "auto.offset.reset": "earliest"}
READ_SECONDS = 5.0


def position(
    bootstrap: str, security: Security | None, group: str, topics: Sequence[str], deadline: float
) -> int | None:
    """A number that grows when the group's position moves; None while it has none."""
    with _asking(bootstrap, security, group) as asking:
        partitions = [one for topic in topics for one in _partitions(asking, topic, deadline)]
        offsets = [one.offset for one in asking.committed(partitions, timeout=deadline) if one.offset >= 0]
    return sum(offsets) if offsets else None


def reader(bootstrap: str, security: Security | None, job: str, group: str, topic: str, deadline: float) -> Reader:
    """How far a job is behind in a topic; what it has no position in, it has not read."""
    with _asking(bootstrap, security, group) as asking:
        places = asking.committed(_partitions(asking, topic, deadline), timeout=deadline)
        behind: list[TopicPartition] = []
        records = 0
        for place in places:
            low, high = asking.get_watermark_offsets(place, timeout=deadline) or (0, 0)
            at = max(place.offset, low)
            if at < high:
                records += high - at
                behind.append(TopicPartition(topic, place.partition, at))
        return Reader(job, records, _oldest(asking, behind))


def _oldest(asking: Consumer, places: list[TopicPartition]) -> float:
    """Age of the oldest record at the places; endless where one of them could not be read in time."""
    if not places:
        return 0.0
    asking.assign(places)
    times: dict[int | None, float] = {}
    deadline = time.monotonic() + READ_SECONDS
    while len(times) < len(places) and time.monotonic() < deadline:
        message = asking.poll(0.5)
        if message is not None and message.error() is None:
            times.setdefault(message.partition(), message.timestamp()[1] / 1000)
    return max(0.0, time.time() - min(times.values())) if len(times) == len(places) else float("inf")


def _partitions(asking: Consumer, topic: str, deadline: float) -> list[TopicPartition]:
    found = asking.list_topics(topic, timeout=deadline).topics[topic].partitions
    return [TopicPartition(topic, number) for number in found]


@contextmanager
def _asking(bootstrap: str, security: Security | None, group: str) -> Iterator[Consumer]:
    made = consumer(bootstrap, group, security, **SETTINGS)
    try:
        yield made
    finally:
        made.close()
