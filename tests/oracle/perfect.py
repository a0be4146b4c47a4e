"""What a job without a fault would leave behind for given batches, as bytes: the checker is tested against it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.chains import expected_publications
from tests.oracle.check import Observed
from tests.oracle.ledger import Entry
from tests.oracle.model import Job, Log
from tests.oracle.oracle import Expectation, SideRecord, count, expect
from tests.oracle.reading import WINDOW_COLUMNS, Delivered, Publication, Row
from tests.oracle.times import format_time

OUTPUT_PARTITIONS = 3


def perfect(job: Job, log: Log, ends: Sequence[Sequence[int]]) -> Observed:
    """The batches end at these offsets, the last of them at the end of the log."""
    expectation = expect(job, log)
    output = _deliver(job, [one for found in expected_publications(job, log, ends).values() for one in found])
    return Observed(
        output,
        [_side(number, side) for number, side in enumerate(expectation.malformed)],
        [_side(number, side) for number, side in enumerate(expectation.aside)],
        _report(expectation, len(output)),
        _entries(expectation, ends),
    )


def even_batches(log: Log, batches: int) -> list[list[int]]:
    """Ends that cut every partition into so many parts."""
    return [[len(records) * number // batches for records in log.partitions] for number in range(1, batches + 1)]


def _deliver(job: Job, publications: Sequence[Publication]) -> list[Delivered]:
    offsets = [0] * OUTPUT_PARTITIONS
    delivered = []
    for publication in publications:
        partition = sum(json.dumps(publication.key).encode()) % OUTPUT_PARTITIONS
        key = _encode(dict(zip(job.sink_key, publication.key, strict=True)))
        delivered.append(Delivered(key, _value(publication), (), partition, offsets[partition]))
        offsets[partition] += 1
    return delivered


def _value(publication: Publication) -> bytes | None:
    if publication.row is None:
        return None
    if publication.retracts is None:
        return _encode(publication.row)
    return _encode(publication.row | {"retracts": [_printable(row) for row in publication.retracts]})


def _encode(row: Row) -> bytes:
    return json.dumps(_printable(row)).encode()


def _printable(row: Row) -> Row:
    return {name: format_time(value) if name in WINDOW_COLUMNS else value for name, value in row.items()}


def _side(offset: int, side: SideRecord) -> Delivered:
    headers = tuple((name, _header(name, value).encode()) for name, value in side.headers)
    return Delivered(side.key, side.value, headers, 0, offset)


def _header(name: str, value: str | int) -> str:
    return format_time(int(value)) if name == "window_end" else str(value)


def _report(expectation: Expectation, written: int) -> Mapping[str, Any]:
    return {
        "watermark": None if expectation.watermark is None else format_time(expectation.watermark),
        "sources": {"events": dict(expectation.totals) | {"late_idle": 0, "lost": 0}},
        "sinks": {"out": {"written": written, "up": True}},
        "side": {"malformed": len(expectation.malformed), "aside": len(expectation.aside)},
    }


def _entries(expectation: Expectation, ends: Sequence[Sequence[int]]) -> list[Entry]:
    entries = []
    starts = [[0] * len(ends[0]), *ends]
    for batch, (start, end) in enumerate(zip(starts, ends, strict=False)):
        for partition in range(len(end)):
            judged = [one for one in expectation.judgements if one.record.partition == partition]
            times = [one.event.time for one in judged[: end[partition]] if one.event]
            counts = count(judged[start[partition] : end[partition]])
            entries.append(Entry(batch, partition, start[partition], end[partition], max(times, default=None), counts))
    return entries
