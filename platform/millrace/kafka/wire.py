"""Requests in Kafka's own protocol over connections of our own, for the questions that clients answer too slowly.

librdkafka searches its lists from the front for each partition and keeps a state machine for each one it reads, so
10,000 partitions cost seconds. The protocol itself takes them all in one request. Reading only.
"""

import contextlib
import socket
import ssl
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from millrace.kafka.scram import RefusedError, conversation
from millrace.kafka.security import Security
from millrace.lag import Partition

CLIENT = b"millrace"

Address = tuple[str, int]

SASL_HANDSHAKE, SASL_AUTHENTICATE, SASL_VERSION = 17, 36, 1  # Kafka 1.0 and newer
SESSION_SHARE = 0.8  # of a login's life, after which it is made anew: the broker cuts off who comes too late

_REQUEST = struct.Struct(">hhih")


class LoginError(ConnectionError):
    """The broker is there, but took neither our login nor our word. A sentence without a stop, for whoever asked."""


class Wire:
    """Keeps one connection per broker. What fails is left to the caller, as an OSError. Not thread-safe."""

    def __init__(self, security: Security | None = None) -> None:
        self._security = security
        self._context = security.context() if security is not None else None
        self._open: dict[Address, socket.socket] = {}
        self._ends: dict[Address, float] = {}
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
        if time.monotonic() >= self._ends.get(address, float("inf")):
            self._drop(address)
        if address not in self._open:
            self._connect(address, deadline)
        stream = self._open[address]
        stream.settimeout(_left(deadline))
        stream.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", _read(stream, 4, deadline))
        answer = _read(stream, length, deadline)
        self.requests += 1
        self.bytes += length
        return memoryview(answer)[4:]  # after the number of the request, which is always 0: one at a time

    def connect(self, address: Address, deadline: float) -> None:
        """Open a connection and log in, so that whoever wants to know sees what the broker says to that."""
        self._drop(address)
        self._connect(address, deadline)

    def _connect(self, address: Address, deadline: float) -> None:
        stream = socket.create_connection(address, timeout=_left(deadline))
        if self._context is not None:
            stream = _encrypted(stream, self._context, address)
        self._open[address] = stream
        if self._security is not None and self._security.mechanism:
            try:
                self._log_in(address, self._security, deadline)
            except BaseException:
                self._drop(address)
                raise

    def _log_in(self, address: Address, login: Security, deadline: float) -> None:
        def ask(api: int, body: bytes) -> memoryview:
            return self._exchange(address, _REQUEST.pack(api, SASL_VERSION, 0, len(CLIENT)) + CLIENT + body, deadline)

        wanted = login.mechanism.encode()
        (error,) = struct.unpack_from(">h", ask(SASL_HANDSHAKE, struct.pack(">h", len(wanted)) + wanted))
        if error:
            raise LoginError(f"the broker does not offer {login.mechanism}")
        steps = conversation(login)
        try:
            message, lifetime = next(steps), 0
            while True:
                answer = ask(SASL_AUTHENTICATE, struct.pack(">i", len(message)) + message)
                data, lifetime = _authenticated(answer, login)
                message = steps.send(data)
        except StopIteration:
            if lifetime:
                self._ends[address] = time.monotonic() + SESSION_SHARE * lifetime / 1000
        except RefusedError as refused:
            raise LoginError(str(refused)) from None

    def _drop(self, address: Address) -> None:
        self._ends.pop(address, None)
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


def _encrypted(stream: socket.socket, context: ssl.SSLContext, address: Address) -> socket.socket:
    try:
        return context.wrap_socket(stream, server_hostname=address[0])
    except ssl.SSLCertVerificationError as error:
        stream.close()
        raise LoginError(f"the broker's certificate is not trusted: {error.verify_message}") from None
    except ssl.SSLError as error:
        stream.close()
        raise LoginError(f"the broker does not speak TLS as we do: {error.reason or error}") from None
    except OSError:
        stream.close()
        raise


def _authenticated(answer: memoryview, login: Security) -> tuple[bytes, int]:
    """What the broker says to a step of a login, and how long, in milliseconds, the login will be good for."""
    error, length = struct.unpack_from(">hh", answer)
    at = 4 + max(0, length)
    if error:
        said = str(answer[4:at], "utf-8") or f"error {error}"
        raise LoginError(f"the broker refused the login of {login.username!r} by {login.mechanism}: {said}")
    (size,) = struct.unpack_from(">i", answer, at)
    at += 4 + max(0, size)
    return bytes(answer[at - max(0, size) : at]), struct.unpack_from(">q", answer, at)[0]


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
