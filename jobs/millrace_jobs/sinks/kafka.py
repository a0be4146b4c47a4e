"""Records into Kafka: in a transaction that also holds the batch's number, or at least once.

The transactional id belongs to job, sink and slot, so a new attempt fences the old one. An attempt that finds its
batch's number committed writes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from millrace import naming
from millrace.errors import UserError
from millrace.kafka.clients import REQUEST_SECONDS, settings
from millrace.kafka.security import read_security
from millrace_jobs.crashes import reach
from millrace_jobs.sinks.slots import Batches

TRANSACTION_MS = 300_000  # longer than any write of one slot may take; a dead writer is fenced, not waited for
_WRITING: Mapping[str, Any] = {
    "linger.ms": 20,
    "batch.size": 1 << 18,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 500_000,
    "partitioner": "murmur2_random",  # a key's partition is the one that Java clients would choose
}


class SinkFailedError(Exception):
    """A sink would not take the records. Says which, and why."""


@dataclass(frozen=True)
class KafkaTarget:
    """A topic, written by one job as one of its sinks."""

    bootstrap: str
    auth: str
    """Folder with the brokers' credentials, or nothing. Only its name travels to the tasks; they read it themselves."""
    namespace: str
    job: str
    state: str
    topic: str
    exactly_once: bool

    def write(self, slot: int, batch: int, rows: Batches) -> int:
        try:
            return self._write_once(slot, batch, rows) if self.exactly_once else self._write_plain(rows)
        except UserError as error:
            raise SinkFailedError(f"topic {self.topic}: {error}") from error
        except KafkaException as error:
            raise SinkFailedError(f"topic {self.topic}: {error.args[0].str()}") from error

    def _settings(self, **more: Any) -> dict[str, Any]:
        return settings(self.bootstrap, read_security(self.auth) if self.auth else None, **more)

    def _write_plain(self, rows: Batches) -> int:
        producer = Producer(self._settings(**_WRITING))
        failures: list[str] = []
        written = _produce(producer, self.topic, rows, failures)
        if producer.flush(REQUEST_SECONDS) or failures:
            raise SinkFailedError(f"topic {self.topic}: {failures[0] if failures else 'the broker does not answer'}")
        return written

    def _write_once(self, slot: int, batch: int, rows: Batches) -> int:
        own = naming.transactional_id(self.namespace, self.job, self.topic, slot)
        transactions = {"transactional.id": own, "transaction.timeout.ms": TRANSACTION_MS}
        producer = Producer(self._settings(**_WRITING, **transactions))
        group = naming.progress_group(self.namespace, self.job, self.topic, slot, self.state)
        marker = Consumer(self._settings(**{"group.id": group, "enable.auto.commit": False}))
        try:
            producer.init_transactions(REQUEST_SECONDS)  # from here on no older attempt can commit
            if self._is_done(marker, batch):
                return sum(one.num_rows for one in rows)
            return self._write_transaction(producer, marker, batch, rows)
        finally:
            marker.close()

    def _write_transaction(self, producer: Producer, marker: Consumer, batch: int, rows: Batches) -> int:
        failures: list[str] = []
        producer.begin_transaction()
        reach("sink-begin", batch)
        try:
            written = _produce(producer, self.topic, rows, failures)
            done = TopicPartition(self.topic, 0, batch + 1)
            producer.send_offsets_to_transaction([done], marker.consumer_group_metadata(), REQUEST_SECONDS)
            if failures:
                raise SinkFailedError(f"topic {self.topic}: {failures[0]}")
            reach("sink-before-commit", batch)
            producer.commit_transaction(REQUEST_SECONDS)
        except BaseException:
            _abort(producer)
            raise
        reach("sink-after-commit", batch)
        return written

    def _is_done(self, marker: Consumer, batch: int) -> bool:
        (found,) = marker.committed([TopicPartition(self.topic, 0)], REQUEST_SECONDS)
        return int(found.offset) > batch


def _produce(producer: Producer, topic: str, rows: Batches, failures: list[str]) -> int:
    def noted(error: Any, _message: Any) -> None:
        if error is not None:
            failures.append(error.str())

    written = 0
    for batch in rows:
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        headers = batch.column("headers").to_pylist() if "headers" in batch.schema.names else None
        for index, (key, value) in enumerate(zip(keys, values, strict=True)):
            _send(producer, topic, key, value, headers[index] if headers else None, noted)
        written += batch.num_rows
        producer.poll(0)
    return written


def _send(producer: Producer, topic: str, key: Any, value: Any, headers: Any, noted: Any) -> None:
    while True:
        try:
            if headers is None:
                return producer.produce(topic, value, key, on_delivery=noted)
            return producer.produce(topic, value, key, on_delivery=noted, headers=headers)
        except BufferError:  # the broker is slower than we are: wait for it, drop nothing
            producer.poll(0.1)


def _abort(producer: Producer) -> None:
    try:
        producer.abort_transaction(REQUEST_SECONDS)
    except KafkaException:
        return  # the next attempt's init_transactions ends what this one began
