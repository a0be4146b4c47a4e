"""Sends the shop's records to Kafka in the background, each when it is due, never faster."""

import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, Message

from millrace.errors import UserError
from millrace.kafka.clients import REQUEST_SECONDS, producer
from millrace.shop import Burst, Record, Shop, crowd, records

# Idempotent: a record sent again after a lost answer must not be in the log twice, or the counts would not agree.
SETTINGS = {"linger.ms": 20, "compression.type": "lz4", "enable.idempotence": True}


class Feed:
    """Context manager: the shop is open inside. What was sent can be read at any time."""

    def __init__(
        self, bootstrap: str, shop: Shop, limit: int | None = None, topics: frozenset[str] | None = None
    ) -> None:
        """`topics`: send to these only; None is all."""
        self._shop, self._topics = shop, topics
        self._limit = limit
        self._producer = producer(bootstrap, **SETTINGS)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shop", daemon=True)
        self._sent: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self._failure: str | None = None
        self._opened_at, self._started = datetime.now(UTC), time.monotonic()
        self._crowd: deque[Record] = deque()

    def __enter__(self) -> Self:
        self._opened_at, self._started = datetime.now(UTC), time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, burst: Burst) -> None:
        """Let a burst begin now, whatever its own time says."""
        now = time.monotonic() - self._started
        self._crowd.extend(list(crowd(self._shop, replace(burst, at_seconds=now), self._opened_at)))

    def close(self) -> None:
        """Close the shop and wait until everything that was sent is in the log."""
        self._closing.set()
        self._thread.join()

    def wait(self, seconds: float) -> None:
        """Wait until the limit is reached, the time is over, or the broker refuses."""
        self._thread.join(seconds)

    def sent(self) -> dict[str, dict[str, int]]:
        """Records that the broker has taken, by topic and kind."""
        counts: dict[str, dict[str, int]] = {}
        with self._lock:
            for (topic, kind), number in self._sent.items():
                counts.setdefault(topic, {})[kind] = number
        return counts

    def check(self) -> None:
        """Raise when the broker would not take a record."""
        if self._failure is not None:
            raise UserError(f"The shop's events cannot be written: {self._failure}")

    def _run(self) -> None:
        for record in itertools.islice(self._records(), self._limit):
            self._pause(self._started + record.due_seconds - time.monotonic())
            if self._closing.is_set() or self._failure is not None:
                break
            if self._topics is not None and record.topic not in self._topics:
                continue
            self._send(record.topic, record.key, record.value, record.kind)
        self._producer.flush(REQUEST_SECONDS)

    def _records(self) -> Iterator[Record]:
        for record in records(self._shop, self._opened_at):
            while self._crowd and self._crowd[0].due_seconds <= record.due_seconds:
                yield self._crowd.popleft()
            yield record

    def _pause(self, seconds: float) -> None:
        self._producer.poll(0)
        if seconds > 0.005:  # shorter pauses cost more than they order
            self._closing.wait(seconds)

    def _send(self, topic: str, key: bytes, value: bytes, kind: str) -> None:
        def count(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                self._failure = error.str()
                return
            with self._lock:
                self._sent[topic, kind] += 1

        while not self._closing.is_set():
            try:
                return self._producer.produce(topic, key=key, value=value, on_delivery=count)
            except BufferError:  # the broker is slower than we are: wait for it, drop nothing
                self._producer.poll(0.1)
