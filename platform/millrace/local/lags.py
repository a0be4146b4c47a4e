"""The lag of every job of a run, asked for in the background so that a slow broker never holds up the screen."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException, TopicPartition

from millrace.kafka.clients import consumer
from millrace.kafka.positions import Lag, Positions

PERIOD_SECONDS = 1.0
ANSWER_SECONDS = 5.0


class LagWatch:
    """Context manager: asks once a second inside. A broker that does not answer leaves the lag unknown, not zero."""

    def __init__(self, bootstrap: str, jobs: Mapping[str, tuple[str, Sequence[str]]]) -> None:
        """`jobs`: name of a job → its consumer group and the topics it reads."""
        self._bootstrap = bootstrap
        self._jobs = dict(jobs)
        self._found: dict[str, Lag | None] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lag", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._thread.join()

    def lag(self, job: str) -> Lag | None:
        """The last answer, or None while there is none."""
        return self._found.get(job)

    def _run(self) -> None:
        positions = Positions(self._bootstrap, ANSWER_SECONDS)
        ready: set[str] = set()
        try:
            while not self._closing.is_set():
                for name, (group, topics) in self._jobs.items():
                    if name in ready or _coordinator_answers(self._bootstrap, group, topics):
                        ready.add(name)
                        self._found[name] = _ask(positions, group, topics)
                self._closing.wait(PERIOD_SECONDS)
        finally:
            positions.close()


def _coordinator_answers(bootstrap: str, group: str, topics: Sequence[str]) -> bool:
    """Whether the group's coordinator is up: librdkafka's admin client crashes when it asks one that still loads."""
    asker = consumer(bootstrap, group, **{"enable.auto.commit": False})
    try:
        asker.committed([TopicPartition(topic, 0) for topic in topics], timeout=ANSWER_SECONDS)
    except KafkaException:
        return False
    finally:
        asker.close()
    return True


def _ask(positions: Positions, group: str, topics: Sequence[str]) -> Lag | None:
    try:
        return positions.lag(group, topics)
    except (KafkaException, FutureTimeoutError):
        return None
