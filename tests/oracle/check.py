"""Everything in which a job's outcome differs from what the oracle expects, each difference in words.

An empty list means: nothing lost, nothing doubled, nothing wrong.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.chains import (
    chain_differences,
    expected_publications,
    final_table,
    once_differences,
    sequence_differences,
    table_differences,
)
from tests.oracle.ledger import Entry, batch_ends, entry_differences, total_differences, watermark_differences
from tests.oracle.model import Job, Log
from tests.oracle.oracle import Expectation, expect
from tests.oracle.reading import Delivered, read_publications
from tests.oracle.sides import side_differences


@dataclass(frozen=True)
class Observed:
    """What a job left behind. Without ledger entries only what holds for any batches is checked."""

    output: Sequence[Delivered]
    malformed: Sequence[Delivered] = ()
    aside: Sequence[Delivered] = ()
    report: Mapping[str, Any] | None = None
    entries: Sequence[Entry] | None = None


def check(job: Job, log: Log, observed: Observed, *, source: str = "events") -> list[str]:
    """The differences, in words."""
    expectation = expect(job, log)
    return [
        *_output(job, log, expectation, observed),
        *side_differences("malformed", expectation.malformed, observed.malformed),
        *side_differences("aside", expectation.aside, observed.aside),
        *_report(expectation, observed, source),
        *(entry_differences(log, expectation, observed.entries) if observed.entries is not None else ()),
    ]


def _output(job: Job, log: Log, expectation: Expectation, observed: Observed) -> Iterator[str]:
    published, unreadable = read_publications(job, observed.output)
    yield from unreadable
    yield from table_differences(job, expectation.table, final_table(published))
    yield from chain_differences(job, published) if job.policy == "correct" else once_differences(job, published)
    if observed.entries is not None:
        ends = batch_ends(observed.entries, len(log.partitions))
        yield from sequence_differences(job, expected_publications(job, log, ends), published)


def _report(expectation: Expectation, observed: Observed, source: str) -> Iterator[str]:
    if observed.report is None:
        return
    report = observed.report
    yield from total_differences(expectation.totals, report.get("sources", {}).get(source, {}), "report")
    yield from watermark_differences(expectation, report.get("watermark"))
    written = sum(sink["written"] for sink in report.get("sinks", {}).values())
    if written != len(observed.output):
        yield f"report: {written} records written to sinks, but the topic holds {len(observed.output)}"
    for name, side in (("malformed", expectation.malformed), ("aside", expectation.aside)):
        if report.get("side", {}).get(name, 0) != len(side):
            yield f"report: side records {name} are {report.get('side', {}).get(name)} and should be {len(side)}"
