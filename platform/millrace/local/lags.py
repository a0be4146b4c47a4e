"""The lag of every job of a run, asked for in the background so that a slow broker never holds up the screen."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException

from millrace.errors import UserError
from millrace.kafka.positions import Lag, Positions
from millrace.kafka.topics import look

PERIOD_SECONDS = 1.0
ANSWER_SECONDS = 5.0
# Kafka makes this topic when the first group asks for its coordinator. Asking for a group's offsets before can hang.
COMMITS_TOPIC = "__consumer_offsets"


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
        while not _anyone_committed(self._bootstrap):
            if self._closing.wait(PERIOD_SECONDS):
                return
        positions = Positions(self._bootstrap, ANSWER_SECONDS)
        try:
            while not self._closing.is_set():
                for name, (group, topics) in self._jobs.items():
                    self._found[name] = _ask(positions, group, topics)
                self._closing.wait(PERIOD_SECONDS)
        finally:
            positions.close()


def _anyone_committed(bootstrap: str) -> bool:
    try:
        return COMMITS_TOPIC in look(bootstrap).topics
    except UserError:
        return False


def _ask(positions: Positions, group: str, topics: Sequence[str]) -> Lag | None:
    try:
        return positions.lag(group, topics)
    except (KafkaException, FutureTimeoutError):
        return None
