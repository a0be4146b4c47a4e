"""One Kafka cluster watched: a thread that asks it again and again, and the last answer for whoever wants it.

A cluster that does not answer slows down nobody else: each has its own thread, deadline and growing pause. What was
known of its jobs is kept, marked as stale.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from millrace.errors import UserError
from millrace.kafka.clients import admin
from millrace.kafka.positions import Positions
from millrace.kafka.refusals import refusal
from millrace.kafka.retention import keeps
from millrace.kafka.security import Security
from millrace.lag import Keep
from millrace_lag.logins import Logins, from_folders
from millrace_lag.subjects import Door, Subject
from millrace_lag.tracks import JobLag, Memory, blind, follow, unseen

KEEPS_SECONDS = 60.0  # topics' settings change rarely, and a minute late is early enough for a margin of hours
LONGEST_PAUSE_SECONDS = 60.0

Key = tuple[str, str]


@dataclass(frozen=True)
class Health:
    """How the observing itself goes."""

    up: bool = False
    last_success: float = 0.0
    poll_seconds: float = 0.0
    polls: int = 0
    failures: int = 0
    error: str = ""
    requests: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class ClusterView:
    """The last that is known of a cluster's jobs."""

    cluster: str
    subjects: tuple[Subject, ...] = ()
    jobs: Mapping[Key, JobLag] = field(default_factory=lambda: MappingProxyType({}))
    health: Health = field(default_factory=Health)


class Asking:
    """The connections to one cluster, as one user."""

    def __init__(self, address: str, deadline_seconds: float, security: Security | None) -> None:
        self.security = security
        self.positions = Positions(address, deadline_seconds, security)
        self.admin: AdminClient = admin(address, security)


class Poller:
    """Asks one cluster once, and remembers what the next time needs. Not thread-safe."""

    def __init__(self, door: Door, deadline_seconds: float, logins: Logins = from_folders) -> None:
        self._door, self._logins = door, logins
        self._asking: Asking | None = None
        self._deadline_seconds = deadline_seconds
        self._memories: dict[Key, Memory] = {}
        self._keeps: Mapping[str, Keep] = {}
        self._keeps_at = 0.0
        self._settings_asked = 0
        self.view = ClusterView(str(door))

    def close(self) -> None:
        if self._asking is not None:
            self._asking.positions.close()

    def poll(self, subjects: tuple[Subject, ...]) -> ClusterView:
        """Ask, and never raise: what fails shows in the view."""
        began, at = time.monotonic(), time.time()
        try:
            jobs, error = self._jobs(self._opened(), subjects), ""
        except (KafkaException, UserError) as failure:
            error = self._told(failure)
            jobs = {one.key: blind(self._last(one, at), error) for one in subjects}
        health = self._health(time.monotonic() - began, error)
        self.view = ClusterView(self.view.cluster, subjects, jobs, health)
        return self.view

    def _opened(self) -> Asking:
        """The connections; new ones when the credentials have changed."""
        security = self._logins(self._door)
        if self._asking is None or self._asking.security != security:
            self.close()
            self._asking = Asking(self._door.address, self._deadline_seconds, security)
        return self._asking

    def _told(self, failure: Exception) -> str:
        """Why the cluster cannot be asked. A client that is refused does not say so; the broker does."""
        if isinstance(failure, UserError):
            return str(failure)
        why = refusal(self._door.address, self._asking.security if self._asking is not None else None)
        return why or str(failure.args[0].str() if hasattr(failure.args[0], "str") else failure)

    def _jobs(self, asking: Asking, subjects: tuple[Subject, ...]) -> dict[Key, JobLag]:
        self._read_keeps(asking, {topic for one in subjects for topic in one.topics})
        reading = asking.positions.read({one.group: one.topics for one in subjects})
        jobs: dict[Key, JobLag] = {}
        memories: dict[Key, Memory] = {}
        for one in subjects:
            memory = self._memories.get(one.key, Memory())
            if one.group in reading.groups:
                seen = reading.groups[one.group]
                memory, jobs[one.key] = follow(memory, one, seen, reading.at, self._keeps)
            else:
                jobs[one.key] = blind(self._last(one, reading.at), reading.failed[one.group])
            memories[one.key] = memory
        self._memories = memories
        return jobs

    def _read_keeps(self, asking: Asking, topics: set[str]) -> None:
        fresh = time.monotonic() - self._keeps_at < KEEPS_SECONDS
        if fresh and topics <= self._keeps.keys():
            return
        self._keeps = keeps(asking.admin, topics, self._deadline_seconds)
        self._keeps_at = time.monotonic()
        self._settings_asked += 1

    def _last(self, one: Subject, at: float) -> JobLag:
        return self.view.jobs.get(one.key) or unseen(at)

    def _health(self, seconds: float, error: str) -> Health:
        before = self.view.health
        asked = self._asking.positions.asked if self._asking is not None else {}
        requests = {**asked, "settings": self._settings_asked}
        after = replace(before, up=not error, poll_seconds=seconds, polls=before.polls + 1, error=error)
        if error:
            return replace(after, failures=before.failures + 1, requests=requests)
        return replace(after, last_success=time.time(), requests=requests)


class Watch:
    """The thread of one cluster. `watched` can be replaced at any time; `view` is the last answer."""

    def __init__(
        self,
        door: Door,
        interval_seconds: float,
        deadline_seconds: float,
        told: Callable[[ClusterView], None],
        logins: Logins = from_folders,
    ) -> None:
        self.watched: tuple[Subject, ...] = ()
        self.view = ClusterView(str(door))
        self._door, self._logins = door, logins
        self._interval, self._deadline, self._told = interval_seconds, deadline_seconds, told
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lag {door}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join(self._deadline + self._interval)

    def _run(self) -> None:
        poller, pause = Poller(self._door, self._deadline, self._logins), self._interval
        try:
            while not self._closing.is_set():
                began = time.monotonic()
                self.view = poller.poll(self.watched)
                self._told(self.view)
                failed = not self.view.health.up
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS) if failed else self._interval
                self._closing.wait(max(0.0, pause - (time.monotonic() - began)))
        finally:
            poller.close()
