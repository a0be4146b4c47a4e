"""The committed positions of consumer groups: all groups of a broker in one request.

The ordinary client must not be asked for them with `list_consumer_group_offsets`: librdkafka 2.16 ends the whole
process with a segmentation fault when the broker answers that it is not, or no longer, the group's coordinator, as a
broker does that is going down. Where our own connections may not be used, a consumer of each group is asked, which does
not.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from millrace.kafka.clients import consumer
from millrace.kafka.commits import Commit, read_note
from millrace.kafka.security import Security
from millrace.kafka.wire import Address, Wire
from millrace.lag import Partition

FIND_COORDINATOR, FIND_VERSION = 10, 4  # these versions, of Kafka 3.0 and newer, take many groups at once
OFFSET_FETCH, FETCH_VERSION = 9, 8
NO_ANSWER = "no broker answers for it"

Commits = dict[Partition, Commit]

_GROUP_KEY, _ALL_TOPICS, _NOT_ONLY_STABLE, _NO_TAGS = b"\x00", b"\x00", b"\x00", b"\x00"
_COMMITTED = struct.Struct(">iqi")


class Reader:
    """Reads the compact forms that newer versions of the protocol are written in."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def take(self, form: struct.Struct) -> tuple[int, ...]:
        found = form.unpack_from(self._data, self._at)
        self._at += form.size
        return found

    def number(self, form: str) -> int:
        return self.take(struct.Struct(form))[0]

    def varint(self) -> int:
        value, shift = 0, 0
        while (byte := self._data[self._at]) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            self._at += 1
        self._at += 1
        return value | byte << shift

    def count(self) -> range:
        """As many turns as the list that starts here has entries."""
        return range(max(0, self.varint() - 1))

    def text(self) -> str:
        length = max(0, self.varint() - 1)
        self._at += length
        return str(self._data[self._at - length : self._at], "utf-8")

    def skip_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            length = self.varint()
            self._at += length


def read_commits(
    wire: Wire, broker: Address, groups: Iterable[str], deadline: float
) -> tuple[dict[str, Commits], dict[str, str]]:
    """The commits of each group, and for those that could not be asked the reason. A group that never was has none."""
    wanted = sorted(set(groups))
    found: dict[str, Commits] = {}
    coordinators = _coordinators(wire, broker, wanted, deadline) if wanted else {}
    for address, mine in coordinators.items():
        request = _list([_compact(one) + _ALL_TOPICS + _NO_TAGS for one in mine]) + _NOT_ONLY_STABLE + _NO_TAGS
        try:
            found |= _fetched(wire.ask(address, OFFSET_FETCH, FETCH_VERSION, _NO_TAGS + request, deadline))
        except (OSError, struct.error, IndexError):
            continue
    return found, {one: NO_ANSWER for one in wanted if one not in found}


class GroupConsumers:
    """The slow way: one consumer for each group, which never joins it. Kept, because opening one is what costs."""

    def __init__(self, bootstrap: str, security: Security | None = None) -> None:
        self._bootstrap, self._security = bootstrap, security
        self._open: dict[str, Consumer] = {}

    def close(self) -> None:
        for one in self._open.values():
            one.close()

    def commits(self, group: str, partitions: Iterable[Partition], seconds: float) -> Commits:
        if group not in self._open:
            self._open[group] = consumer(self._bootstrap, group, self._security, **{"enable.auto.commit": False})
        asked = [TopicPartition(*one) for one in partitions]
        found = self._open[group].committed(asked, timeout=seconds) if asked else []
        return {
            (one.topic, one.partition): Commit(one.offset, read_note(one.metadata))
            for one in found
            if one.offset >= 0 and one.error is None
        }

    def read(
        self, groups: Mapping[str, Iterable[Partition]], seconds: float
    ) -> tuple[dict[str, Commits], dict[str, str]]:
        """As `read_commits`."""
        found: dict[str, Commits] = {}
        failed: dict[str, str] = {}
        for group, partitions in groups.items():
            try:
                found[group] = self.commits(group, partitions, seconds)
            except KafkaException as error:
                failed[group] = str(error.args[0].str())
        return found, failed


def _coordinators(wire: Wire, broker: Address, groups: list[str], deadline: float) -> dict[Address, list[str]]:
    request = _GROUP_KEY + _list([_compact(one) for one in groups]) + _NO_TAGS
    found: dict[Address, list[str]] = defaultdict(list)
    try:
        answer = Reader(wire.ask(broker, FIND_COORDINATOR, FIND_VERSION, _NO_TAGS + request, deadline))
        answer.skip_tags()
        answer.number(">i")  # the throttle time
        for _ in answer.count():
            group, _node, host, port, error, _message = (
                answer.text(),
                answer.number(">i"),
                answer.text(),
                answer.number(">i"),
                answer.number(">h"),
                answer.text(),
            )
            answer.skip_tags()
            if error == 0:
                found[host, port].append(group)
    except (OSError, struct.error, IndexError):
        return {}
    return found


def _fetched(data: memoryview) -> dict[str, Commits]:
    answer = Reader(data)
    answer.skip_tags()
    answer.number(">i")  # the throttle time
    found: dict[str, Commits] = {}
    for _ in answer.count():
        group, commits = answer.text(), Commits()
        for _ in answer.count():
            commits |= _topic(answer)
        if answer.number(">h") == 0:
            found[group] = commits
        answer.skip_tags()
    return found


def _topic(answer: Reader) -> Commits:
    topic, commits = answer.text(), Commits()
    for _ in answer.count():
        partition, offset, _epoch = answer.take(_COMMITTED)
        text, error = answer.text(), answer.number(">h")
        answer.skip_tags()
        if error == 0 and offset >= 0:
            commits[topic, partition] = Commit(offset, read_note(text))
    answer.skip_tags()
    return commits


def _list(entries: list[bytes]) -> bytes:
    return _varint(len(entries) + 1) + b"".join(entries)


def _compact(text: str) -> bytes:
    data = text.encode()
    return _varint(len(data) + 1) + data


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
