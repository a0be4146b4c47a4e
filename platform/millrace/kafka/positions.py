"""How far consumer groups are behind their topics, by what the broker says.

Committed positions are read first and end offsets after, so lag is never too small; nothing here ever writes. All calls
are batched: the number of requests grows with the number of brokers only, not with that of partitions or groups.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    KafkaError,
    KafkaException,
)

from millrace.kafka.clients import REQUEST_SECONDS, admin
from millrace.kafka.ends import client_offsets, read_offsets
from millrace.kafka.groups import Commits, GroupConsumers, read_commits
from millrace.kafka.security import Security
from millrace.kafka.times import Times
from millrace.kafka.wire import Address, Wire
from millrace.lag import Log, Partition, Place, Start, Written, age, place

OBSERVER_GROUP = "millrace.observer"  # never commits and never joins; a consumer must have some group
LEADER_SECONDS = 2.0  # the client waits for a leader that is away; longer than this nobody else shall wait for it

Logs = dict[Partition, Log]


@dataclass(frozen=True)
class Lag:
    """How far behind: records not yet done, and the age of the oldest of them (zero when there is none)."""

    records: int
    seconds: float


@dataclass(frozen=True)
class Standing:
    """A group's places, when the record at each was written (if one is unread and its time is known), its commits."""

    places: Mapping[Partition, Place]
    written: Mapping[Partition, Written]
    commits: Commits
    untimed: frozenset[Partition] = frozenset()
    """Partitions with something unread whose record could not be read in time."""
    unanswered: frozenset[Partition] = frozenset()
    """Partitions that exist, but whose leader did not answer."""


@dataclass(frozen=True)
class Reading:
    """One look at a cluster: when it ended, what was found for each group, and why a group could not be asked."""

    at: float
    groups: Mapping[str, Standing]
    failed: Mapping[str, str]


class Positions:
    """Asks one cluster. Keeps its connections, so that asking every second costs little. Not thread-safe."""

    def __init__(
        self,
        bootstrap: str,
        deadline_seconds: float = REQUEST_SECONDS,
        security: Security | None = None,
        wired: bool = True,
    ) -> None:
        """`wired`: whether brokers may be asked over connections of our own; else only the ordinary client is used."""
        self._admin = admin(bootstrap, security)
        self._wire = Wire(security) if wired else None
        self._consumers = GroupConsumers(bootstrap, security)
        self._broker: Address = ("", 0)
        self._times = Times(bootstrap, OBSERVER_GROUP, self._wire, security)
        self._seconds = deadline_seconds
        self._deadline = 0.0
        self._ends: Mapping[Partition, int] = {}
        self._leaders: Mapping[Partition, Address] = {}
        self.asked = dict.fromkeys(("metadata", "commits", "offsets", "times"), 0)
        """Requests so far, by what was asked."""

    def close(self) -> None:
        self._times.close()
        self._consumers.close()
        if self._wire is not None:
            self._wire.close()

    def lag(self, group: str, topics: Iterable[str]) -> Lag:
        """The group's lag over all partitions of the topics. A partition without a commit counts from its start."""
        reading = self.read({group: dict.fromkeys(topics, "earliest")})
        if group in reading.failed:
            raise KafkaException(KafkaError(KafkaError._FAIL, reading.failed[group]))  # noqa: SLF001  # its public name
        found = reading.groups[group]
        seconds = max((age(reading.at, one.at) for one in found.written.values()), default=0.0)
        return Lag(sum(one.records for one in found.places.values()), seconds)

    def read(self, groups: Mapping[str, Mapping[str, Start]]) -> Reading:
        """Where the groups stand in their topics. Topics that do not exist have no partitions."""
        self._deadline = time.monotonic() + self._seconds
        existing = self._partitions({topic for topics in groups.values() for topic in topics})
        commits, failed = self._commits(groups, existing)
        asked = {group: topics for group, topics in groups.items() if group in commits}
        logs = self._logs()
        begins = self._begins(asked, commits, logs)
        places = {group: _places(group, topics, commits[group], logs, begins) for group, topics in asked.items()}
        found = self._timed(places, commits)
        if silent := existing - self._ends.keys():
            found = {group: replace(one, unanswered=_of(silent, asked[group])) for group, one in found.items()}
        return Reading(time.time(), found, failed)

    def commits(self, groups: Iterable[str]) -> dict[str, Commits]:
        """Every position that the groups ever committed."""
        self._deadline = time.monotonic() + self._seconds
        existing = self._partitions(None)
        everywhere = {topic for topic, _number in existing}
        return self._commits(dict.fromkeys(groups, everywhere), existing)[0]

    def _left(self) -> float:
        return max(0.001, self._deadline - time.monotonic())

    def _commits(
        self, groups: Mapping[str, Iterable[str]], existing: set[Partition]
    ) -> tuple[dict[str, Commits], dict[str, str]]:
        """The commits of each group, and why a group could not be asked. That none could be asked is an error."""
        if self._wire is not None:
            before = self._wire.requests
            found, failed = read_commits(self._wire, self._broker, groups, self._deadline)
            self.asked["commits"] += self._wire.requests - before
        else:
            found, failed = self._consumers.read(
                {one: _of(existing, topics) for one, topics in groups.items()}, self._left()
            )
            self.asked["commits"] += len(groups)
        if failed and not found:
            raise KafkaException(KafkaError(KafkaError._FAIL, next(iter(failed.values()))))  # noqa: SLF001
        return found, failed

    def _partitions(self, topics: set[str] | None) -> set[Partition]:
        """Every partition of the topics, or of all, that exists; who leads it is remembered for what follows."""
        listed = self._admin.list_topics(timeout=self._left())
        self.asked["metadata"] += 1
        found = {
            (topic, number): one.leader
            for topic in (listed.topics.keys() if topics is None else topics & listed.topics.keys())
            for number, one in listed.topics[topic].partitions.items()
        }
        brokers = {number: (str(one.host), one.port) for number, one in listed.brokers.items()}
        self._broker = next(iter(brokers.values()), ("", 0))
        self._leaders = {one: brokers[leader] for one, leader in found.items() if leader in brokers}
        return set(found)

    def _logs(self) -> dict[str, Logs]:
        """What each topic holds, by partition, as far as partitions have a leader that answers."""
        starts = self._offsets(dict.fromkeys(self._leaders, OFFSET_BEGINNING))
        ends = self._offsets(dict.fromkeys(starts, OFFSET_END))
        found: dict[str, Logs] = defaultdict(dict)
        for one, end in ends.items():
            found[one[0]][one] = Log(starts[one], end)
        self._times.forget(one for one, end in ends.items() if end < self._ends.get(one, 0))
        self._ends = ends
        return found

    def _offsets(self, wanted: Mapping[Partition, int]) -> dict[Partition, int]:
        """What does not answer is left out; that nothing answers is an error."""
        found: dict[Partition, int] = {}
        if self._wire is not None:
            before = self._wire.requests
            found = read_offsets(self._wire, wanted, self._leaders, self._deadline)
            self.asked["offsets"] += self._wire.requests - before
        missing = {one: what for one, what in wanted.items() if one not in found}
        if missing:
            seconds = min(LEADER_SECONDS, self._left()) if found else self._left()
            found |= client_offsets(self._admin, missing, seconds)
            self.asked["offsets"] += 1
        if wanted and not found:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # its public name
        return found

    def _begins(
        self, groups: Mapping[str, Mapping[str, Start]], commits: Mapping[str, Commits], logs: Mapping[str, Logs]
    ) -> dict[tuple[str, Partition], int]:
        """Where each group without any commit in a topic will begin, unless that is the log's start."""
        begins: dict[tuple[str, Partition], int] = {}
        for group, topics in groups.items():
            begun = {topic for topic, _number in commits[group]}
            for topic, start in topics.items():
                if topic not in begun and start != "earliest":
                    found = self._from(start, logs.get(topic, {}))
                    begins |= {(group, one): offset for one, offset in found.items()}
        return begins

    def _from(self, start: Start, logs: Logs) -> dict[Partition, int]:
        if not isinstance(start, float) or not logs:
            return {one: log.end for one, log in logs.items()}
        found = self._offsets(dict.fromkeys(logs, int(start * 1000)))
        return {one: logs[one].end if offset < 0 else offset for one, offset in found.items()}

    def _timed(
        self, places: Mapping[str, Mapping[Partition, Place]], commits: Mapping[str, Commits]
    ) -> dict[str, Standing]:
        behind = {(one, spot.position) for mine in places.values() for one, spot in mine.items() if spot.records}
        before = self._times.consumed + (self._wire.requests if self._wire else 0)
        times = self._times.at(behind, self._leaders, self._deadline)
        self.asked["times"] += self._times.consumed + (self._wire.requests if self._wire else 0) - before
        return {group: _standing(mine, commits[group], times) for group, mine in places.items()}


def lag(bootstrap: str, group: str, topics: Iterable[str]) -> Lag:
    """One question, one answer. Whoever asks often keeps a `Positions`."""
    positions = Positions(bootstrap)
    try:
        return positions.lag(group, topics)
    finally:
        positions.close()


def committed_topics(bootstrap: str, groups: Iterable[str], security: Security | None = None) -> dict[str, set[str]]:
    """The topics in which each group has a position; groups without any are left out."""
    positions = Positions(bootstrap, security=security)
    try:
        reading = positions.commits(groups)
    finally:
        positions.close()
    return {group: {topic for topic, _number in found} for group, found in reading.items() if found}


def _of(partitions: Iterable[Partition], topics: Iterable[str]) -> frozenset[Partition]:
    wanted = frozenset(topics)
    return frozenset(one for one in partitions if one[0] in wanted)


def _places(
    group: str,
    topics: Iterable[str],
    commits: Commits,
    logs: Mapping[str, Logs],
    begins: Mapping[tuple[str, Partition], int],
) -> dict[Partition, Place]:
    """A partition that was added to a topic the job already reads is read from its start, as Spark does."""
    return {
        one: place(commits[one].offset if one in commits else None, log, begins.get((group, one), log.start))
        for topic in topics
        for one, log in logs.get(topic, {}).items()
    }


def _standing(
    places: Mapping[Partition, Place], commits: Commits, times: Mapping[tuple[Partition, int], Written | None]
) -> Standing:
    written: dict[Partition, Written] = {}
    untimed: set[Partition] = set()
    final = dict(places)
    for one, spot in places.items():
        if not spot.records:
            continue
        if (one, spot.position) not in times:
            untimed.add(one)
        elif (at := times[one, spot.position]) is None:
            final[one] = replace(spot, hollow=True)
        else:
            written[one] = at
    return Standing(final, written, commits, frozenset(untimed))
