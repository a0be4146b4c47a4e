"""When the records at given offsets were written.

A record's time never changes, so each is asked for once: jobs that stand still cost nothing. Batch headers answer
nearly all of it in one request per broker; what they leave open, an ordinary consumer reads.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, TopicPartition

from millrace.kafka.clients import consumer
from millrace.kafka.headers import read_times
from millrace.kafka.security import Security
from millrace.kafka.wire import Address, Wire
from millrace.lag import Partition, Written

Spot = tuple[Partition, int]
"""A partition and an offset in it."""

# A broker leaves out what does not fit, so less than a batch brings nothing at all; more only costs bytes.
CONSUMER_BYTES = 2**18
CONSUMER_SETTINGS: Mapping[str, Any] = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,  # tells "there is no record" from "none has come yet"
    "auto.offset.reset": "error",
    "fetch.message.max.bytes": CONSUMER_BYTES,
    "queued.min.messages": 1,
    "fetch.wait.max.ms": 50,
}


class Times:
    """Asks one cluster, and remembers. Not thread-safe."""

    def __init__(self, bootstrap: str, group: str, wire: Wire | None, security: Security | None = None) -> None:
        self._bootstrap, self._group, self._wire, self._security = bootstrap, group, wire, security
        self._reader: Consumer | None = None
        self._known: dict[Spot, Written] = {}
        self.consumed = 0
        """How often the consumer was needed."""

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def forget(self, partitions: Iterable[Partition]) -> None:
        """These logs were made anew: the same offset is another record now."""
        gone = frozenset(partitions)
        if gone:
            self._known = {spot: at for spot, at in self._known.items() if spot[0] not in gone}

    def at(
        self, wanted: Iterable[Spot], leaders: Mapping[Partition, Address], deadline: float
    ) -> dict[Spot, Written | None]:
        """The time of the first record at or after each spot; None when there is none; missing when it is not known."""
        spots = set(wanted)
        self._known = {spot: at for spot, at in self._known.items() if spot in spots}
        nothing: set[Spot] = set()
        for layer in _layers(spots - self._known.keys()):
            found = read_times(self._wire, layer, leaders, deadline) if self._wire else {}
            self._known |= {(one, layer[one]): at for one, at in found.items()}
            rest = {one: offset for one, offset in layer.items() if one not in found}
            nothing |= self._consume(rest, deadline)
        return {**self._known, **dict.fromkeys(nothing)}

    def _consume(self, positions: Mapping[Partition, int], deadline: float) -> set[Spot]:
        """Read the records themselves. Returns the spots that no record comes after."""
        if not positions or time.monotonic() >= deadline:
            return set()
        if self._reader is None:
            self._reader = consumer(self._bootstrap, self._group, self._security, **CONSUMER_SETTINGS)
        self._reader.assign([TopicPartition(*one, offset) for one, offset in positions.items()])
        self.consumed += 1
        try:
            return self._collect(self._reader, positions, deadline)
        finally:
            self._reader.unassign()

    def _collect(self, reader: Consumer, positions: Mapping[Partition, int], deadline: float) -> set[Spot]:
        missing, nothing = dict(positions), set[Spot]()
        while missing and time.monotonic() < deadline:
            for message in reader.consume(len(positions), timeout=0.1):
                one = (str(message.topic()), int(message.partition() or 0))
                error = message.error()
                if one not in missing:
                    continue
                spot = (one, missing.pop(one))
                kind, milliseconds = message.timestamp()
                if error is None and kind != TIMESTAMP_NOT_AVAILABLE:
                    self._known[spot] = Written(milliseconds / 1000)
                elif error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # its public name
                    nothing.add(spot)
        return nothing


def _layers(spots: Iterable[Spot]) -> list[dict[Partition, int]]:
    """A request can ask for one offset of each partition: jobs on one topic at different places take turns."""
    by_partition: dict[Partition, list[int]] = defaultdict(list)
    for one, offset in sorted(spots):
        by_partition[one].append(offset)
    deepest = max(map(len, by_partition.values()), default=0)
    return [
        {one: offsets[turn] for one, offsets in by_partition.items() if turn < len(offsets)} for turn in range(deepest)
    ]
