"""Where logs start and end, and where a time lies in them: for all partitions of a broker in one request.

A partition that does not answer is left out. For what our own connections leave open, the ordinary client is asked; it
is slower.
"""

import struct
from collections.abc import Mapping
from concurrent.futures import wait

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from millrace.kafka.wire import Address, Wire, by_leader, by_topic, topics_in
from millrace.lag import Partition

LIST_OFFSETS, VERSION = 2, 2  # Kafka 0.11 and newer
# librdkafka searches such lists from the front for each partition. Eight short ones cost an eighth of one long one.
LISTS = 8
SLACK_SECONDS = 0.5  # the client keeps its own deadline; this is for a busy machine

_FRONT = struct.Struct(">ib")
_ASKED = struct.Struct(">iq")
_ANSWER = struct.Struct(">ihqq")


def read_offsets(
    wire: Wire, wanted: Mapping[Partition, int], leaders: Mapping[Partition, Address], deadline: float
) -> dict[Partition, int]:
    """The offset for each question: -2 asks for the log's start, -1 for its end, else the first record since a time.

    The last gives -1 when there is no such record.
    """
    found: dict[Partition, int] = {}
    for address, mine in by_leader(wanted, leaders).items():
        request = _FRONT.pack(-1, 0) + by_topic(mine, _ASKED.pack)
        try:
            answer = wire.ask(address, LIST_OFFSETS, VERSION, request, deadline)
            found |= _offsets(answer)
        except (OSError, struct.error):
            continue
    return found


def client_offsets(client: AdminClient, wanted: Mapping[Partition, int], seconds: float) -> dict[Partition, int]:
    """The same through the ordinary client."""
    pairs = list(wanted.items())
    asks = [{TopicPartition(*one): _spec(what) for one, what in pairs[part::LISTS]} for part in range(LISTS)]
    answers = [client.list_offsets(ask, request_timeout=seconds) for ask in asks if ask]
    futures = {(one.topic, one.partition): future for answer in answers for one, future in answer.items()}
    wait(futures.values(), seconds + SLACK_SECONDS)
    known = {one: future for one, future in futures.items() if future.done() and future.exception() is None}
    return {one: future.result().offset for one, future in known.items()}


def _offsets(answer: memoryview) -> dict[Partition, int]:
    found: dict[Partition, int] = {}
    for topic, at in topics_in(answer, 4, lambda at: at + _ANSWER.size):  # after the throttle time
        partition, error, _time, offset = _ANSWER.unpack_from(answer, at)
        if error == 0:
            found[topic, partition] = offset
    return found


def _spec(offset: int) -> OffsetSpec:
    ends: dict[int, OffsetSpec] = {OFFSET_BEGINNING: OffsetSpec.earliest(), OFFSET_END: OffsetSpec.latest()}
    return ends[offset] if offset in ends else OffsetSpec.for_timestamp(offset)
