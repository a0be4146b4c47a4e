"""Positions in the log: what Spark planned for a batch, what we tell the consumer group, and what retention took.

Spark's checkpoint is the truth; the consumer group is told after each batch, so that every Kafka tool can see it.
"""

import json
import logging
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

from millrace.errors import UserError
from millrace.kafka.clients import REQUEST_SECONDS, consumer
from millrace.kafka.commits import note
from millrace.kafka.security import Security
from millrace_jobs.files import Folder
from millrace_jobs.ledger import Entry

Partition = tuple[str, int]
log = logging.getLogger(__name__)


def planned_offsets(folder: Folder, batch: int) -> dict[Partition, int]:
    """Where the batch ends in each partition, as Spark wrote it down before the batch could run."""
    content = folder.read(f"spark/offsets/{batch}")
    if content is None:
        raise UserError(f"The checkpoint {folder.address} lacks the offsets of batch {batch}; it is not whole.")
    ends: dict[Partition, int] = {}
    for line in content.decode().splitlines()[2:]:  # a version and Spark's own settings come first
        for topic, partitions in json.loads(line).items():
            ends |= {(topic, int(partition)): end for partition, end in partitions.items()}
    return ends


class Positions:
    """The job's consumer group. It never joins the group and never reads; it commits and asks."""

    def __init__(self, bootstrap: str, group: str, security: Security | None = None) -> None:
        self._bootstrap, self._group = bootstrap, group
        self._consumer = self._open(security)

    def renew(self, security: Security | None) -> None:
        """Go on as somebody else."""
        before, self._consumer = self._consumer, self._open(security)
        before.close()

    def _open(self, security: Security | None) -> Consumer:
        return consumer(self._bootstrap, self._group, security, **{"enable.auto.commit": False})

    def commit(self, entry: Entry | None) -> None:
        """Tell the group. A failure costs nobody data: the next batch tells it again, and the observer sees the lag."""
        if entry is None:
            return
        took, now = sum(entry.seconds.values()), time.time()
        offsets = [
            TopicPartition(one.topic, one.partition, one.end, metadata=note(now, took, one.total.lost))
            for one in entry.partitions
        ]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            log.warning("the position could not be committed", extra={"cause": error.args[0].name()})

    def lost(self, of: Partition, start: int, first_seen: int) -> int:
        """Records from `start` on that retention took before we read them. A gap may also be a transaction's marker."""
        if first_seen <= start:
            return 0
        low, _ = self._consumer.get_watermark_offsets(TopicPartition(*of), timeout=REQUEST_SECONDS)
        return max(0, min(int(low), first_seen) - start)

    def close(self) -> None:
        self._consumer.close()
