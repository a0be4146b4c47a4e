"""When the records at given offsets were written, for thousands of partitions in one request, from batch headers.

A broker answers with whole batches; only the 61 bytes at the front of each are looked at, and the records themselves
where they are not compressed. What a header cannot tell exactly is left out, for the caller to ask in another way; so
is everything that fails.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from millrace.kafka.wire import Address, Wire, by_leader, by_topic, topics_in
from millrace.lag import Partition, Written

FETCH, VERSION = 1, 5  # Kafka 1.0 and newer know this version; the oldest one that Kafka 4 still takes is 4
BATCH_BYTES = (16 * 2**10, 2**20)  # what is asked of each partition: most batches fit the first, nearly all the second
RESPONSE_BYTES = 32 * 2**20
SPREAD_MS = 100  # within a batch of producers' times the header only gives a range; a narrower one is exact enough

_FETCH = struct.Struct(">iiiib")
_ASKED = struct.Struct(">iqqi")
_ANSWER = struct.Struct(">ihqqqi")
_BATCH = struct.Struct(">qiibIhiqq")
_HEADER_BYTES = 61
_BATCH_OVERHEAD = 12  # the offset and the length stand before what the length counts
_ABORTED_BYTES = 16
_MAGIC, _BROKER_TIME, _CONTROL, _COMPRESSED = 2, 0x08, 0x20, 0x07


@dataclass(frozen=True)
class Header:
    """What a batch says about itself before its records. Times in milliseconds since 1970."""

    base: int
    last: int
    size: int
    attributes: int
    first_ms: int
    max_ms: int

    def time_of(self, offset: int, records: memoryview) -> float | None:
        """The record's time in seconds since 1970; None when it cannot be had without unpacking."""
        if self.attributes & _BROKER_TIME:
            return self.max_ms / 1000
        if self.first_ms < 0:
            return None
        if offset <= self.base or abs(self.max_ms - self.first_ms) <= SPREAD_MS:
            return self.first_ms / 1000
        if self.attributes & _COMPRESSED:
            return None
        later = _delta(records, offset - self.base)
        return None if later is None else (self.first_ms + later) / 1000


def read_times(
    wire: Wire, positions: Mapping[Partition, int], leaders: Mapping[Partition, Address], deadline: float
) -> dict[Partition, Written]:
    """The first record at or after each position, as far as headers tell about it before the deadline."""
    found: dict[Partition, Written] = {}
    for size in BATCH_BYTES:
        missing = {one: offset for one, offset in positions.items() if one not in found}
        for address, wanted in by_leader(missing, leaders).items():
            found |= _read_broker(wire, address, wanted, size, deadline)
    return found


def _read_broker(
    wire: Wire, address: Address, wanted: Mapping[Partition, int], size: int, deadline: float
) -> dict[Partition, Written]:
    """Ask again for what had no room in the answer, as long as every answer brings something."""
    found: dict[Partition, Written] = {}
    missing = dict(wanted)
    while missing:
        try:
            answer = wire.ask(address, FETCH, VERSION, _request(missing, size), deadline)
            seen = dict(_times(answer, missing))
        except (OSError, struct.error, IndexError):
            break
        found |= {one: written for one, written in seen.items() if written is not None}
        missing = {one: offset for one, offset in missing.items() if one not in seen}
        if not seen or len(answer) < RESPONSE_BYTES - size:
            break
    return found


def header(batch: memoryview | bytes) -> Header | None:
    """The header of the batch that starts here; None when it is cut off or older than Kafka 0.11."""
    if len(batch) < _BATCH.size:
        return None
    base, length, _epoch, magic, _crc, attributes, last_delta, first_ms, max_ms = _BATCH.unpack_from(batch)
    if magic != _MAGIC:
        return None
    return Header(base, base + last_delta, length + _BATCH_OVERHEAD, attributes, first_ms, max_ms)


def written_at(records: memoryview | bytes, offset: int) -> Written | None:
    """The time of the first record at or after the offset. Batches of transaction markers hold no record."""
    rest = memoryview(records)
    while (found := header(rest)) is not None:
        if found.last >= offset and not found.attributes & _CONTROL:
            at = found.time_of(offset, rest[_HEADER_BYTES : found.size])
            return None if at is None else Written(at, found.size / (found.last - found.base + 1))
        rest = rest[found.size :]
    return None


def _delta(records: memoryview, wanted: int) -> int | None:
    """How much later than the batch's first record the first one at or after this offset in the batch is, in ms."""
    at = 0
    while at < len(records):
        length, body = _varint(records, at)
        later, next_field = _varint(records, body + 1)  # a byte of attributes stands before it
        number, _ = _varint(records, next_field)
        if number >= wanted:
            return later
        at = body + length
    return None


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number that starts here, in Kafka's variable length, and where the next thing starts."""
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def _request(positions: Mapping[Partition, int], size: int) -> bytes:
    any_replica, no_wait, min_bytes, uncommitted = -1, 0, 0, 0
    front = _FETCH.pack(any_replica, no_wait, min_bytes, RESPONSE_BYTES, uncommitted)
    return front + by_topic(positions, lambda partition, offset: _ASKED.pack(partition, offset, -1, size))


def _times(answer: memoryview, positions: Mapping[Partition, int]) -> Iterator[tuple[Partition, Written | None]]:
    """For each partition that brought a batch: what is known of the record, or None when the header leaves it open."""

    def records_at(at: int) -> int:
        aborted = int(_ANSWER.unpack_from(answer, at)[-1])
        return at + _ANSWER.size + max(0, aborted) * _ABORTED_BYTES

    def skip(at: int) -> int:
        start = records_at(at)
        return start + 4 + max(0, int(struct.unpack_from(">i", answer, start)[0]))

    for topic, at in topics_in(answer, 4, skip):  # after the throttle time
        one = (topic, _ANSWER.unpack_from(answer, at)[0])
        records = answer[records_at(at) + 4 : skip(at)]
        if records and one in positions:
            yield one, written_at(records, positions[one])
