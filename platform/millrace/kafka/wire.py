"""Requests in Kafka's own protocol over a plain connection, for the two questions that clients answer too slowly.

librdkafka searches its lists from the front for each partition and keeps a state machine for each one it reads, so
10,000 partitions cost seconds. The protocol itself takes them all in one request. Reading only; brokers that ask for a
login or encryption are not for here.
"""

import contextlib
import socket
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from millrace.lag import Partition

CLIENT = b"millrace"

Address = tuple[str, int]

_REQUEST = struct.Struct(">hhih")


class Wire:
    """Keeps one connection per broker. What fails is left to the caller, as an OSError. Not thread-safe."""

    def __init__(self) -> None:
        self._open: dict[Address, socket.socket] = {}
        self.requests = 0
        self.bytes = 0

    def close(self) -> None:
        for address in tuple(self._open):
            self._drop(address)

    def ask(self, address: Address, api: int, version: int, body: bytes, deadline: float) -> memoryview:
        """The answer's body. A connection on which anything goes wrong is not used again."""
        try:
            return self._exchange(address, _REQUEST.pack(api, version, 0, len(CLIENT)) + CLIENT + body, deadline)
        except OSError:
            self._drop(address)
            raise

    def _exchange(self, address: Address, request: bytes, deadline: float) -> memoryview:
        if address not in self._open:
            self._open[address] = socket.create_connection(address, timeout=_left(deadline))
        stream = self._open[address]
        stream.settimeout(_left(deadline))
        stream.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", _read(stream, 4, deadline))
        answer = _read(stream, length, deadline)
        self.requests += 1
        self.bytes += length
        return memoryview(answer)[4:]  # after the number of the request, which is always 0: one at a time

    def _drop(self, address: Address) -> None:
        stream = self._open.pop(address, None)
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def by_leader(
    wanted: Mapping[Partition, int], leaders: Mapping[Partition, Address]
) -> dict[Address, dict[Partition, int]]:
    """What to ask each broker; partitions without a leader are left out."""
    grouped: dict[Address, dict[Partition, int]] = defaultdict(dict)
    for one, value in wanted.items():
        if one in leaders:
            grouped[leaders[one]][one] = value
    return grouped


def by_topic(wanted: Mapping[Partition, int], pack: Callable[[int, int], bytes]) -> bytes:
    """The partitions as the protocol lists them, topic by topic; `pack` writes one partition and its value."""
    topics: dict[str, list[bytes]] = defaultdict(list)
    for (topic, partition), value in wanted.items():
        topics[topic].append(pack(partition, value))
    parts = [struct.pack(">i", len(topics))]
    for topic, asked in topics.items():
        name = topic.encode()
        parts += [struct.pack(">h", len(name)), name, struct.pack(">i", len(asked)), *asked]
    return b"".join(parts)


def topics_in(answer: memoryview, at: int, skip: Callable[[int], int]) -> Iterator[tuple[str, int]]:
    """Topic and place of each partition in an answer's list; `skip` gives the place after a partition."""
    (topics,) = struct.unpack_from(">i", answer, at)
    at += 4
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", answer, at)
        topic = str(answer[at + 2 : at + 2 + length], "utf-8")
        (partitions,) = struct.unpack_from(">i", answer, at + 2 + length)
        at += 6 + length
        for _ in range(partitions):
            yield topic, at
            at = skip(at)


def _read(stream: socket.socket, length: int, deadline: float) -> bytearray:
    if length < 0:
        raise ConnectionError("this is no Kafka broker")
    buffer = bytearray(length)
    view, done = memoryview(buffer), 0
    while done < length:
        stream.settimeout(_left(deadline))
        count = stream.recv_into(view[done:])
        if count == 0:
            raise ConnectionError("the broker closed the connection")
        done += count
    return buffer


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
