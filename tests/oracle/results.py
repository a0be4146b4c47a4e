"""The results that counting events make, each with its closing time and the events it is made of."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.oracle.aggregates import aggregate
from tests.oracle.model import Job, Window
from tests.oracle.windows import Judged, Span

ByKey = tuple[Any, ...]


@dataclass(frozen=True)
class Result:
    """One row of the final table. `row` has the window, the by columns, the aggregates and, for correct, `revision`."""

    key: tuple[Any, ...]
    row: dict[str, Any]
    closes: int
    events: tuple[Judged, ...]


def results(job: Job, events: Iterable[Judged]) -> list[Result]:
    """Every result of the counting events, closed or not."""
    if job.window is None:
        return []
    found: list[Result] = []
    for by, own in _by_key(job.window, events).items():
        found.extend(_result(job, job.window, by, span, members) for span, members in _groups(job.window, own))
    return found


def _by_key(window: Window, events: Iterable[Judged]) -> dict[ByKey, list[Judged]]:
    groups: defaultdict[ByKey, list[Judged]] = defaultdict(list)
    for event in events:
        if event.counts_in:
            groups[tuple(event.fields[column] for column in window.by)].append(event)
    return {
        by: sorted(group, key=lambda e: (e.time, e.record.partition, e.record.offset)) for by, group in groups.items()
    }


def _groups(window: Window, events: list[Judged]) -> Iterator[tuple[Span, list[Judged]]]:
    if window.type == "session":
        return _sessions(window.size, events)
    if window.type == "sliding":
        return _slides(window.size, events)
    return _aligned(events)


def _aligned(events: list[Judged]) -> Iterator[tuple[Span, list[Judged]]]:
    groups: defaultdict[Span, list[Judged]] = defaultdict(list)
    for event in events:
        for span in event.counts_in:
            groups[span].append(event)
    yield from groups.items()


def _sessions(gap: int, events: list[Judged]) -> Iterator[tuple[Span, list[Judged]]]:
    chain: list[Judged] = []
    for event in events:
        if chain and event.time - chain[-1].time >= gap:
            yield (chain[0].time, chain[-1].time + gap), chain
            chain = []
        chain.append(event)
    if chain:
        yield (chain[0].time, chain[-1].time + gap), chain


def _slides(size: int, events: list[Judged]) -> Iterator[tuple[Span, list[Judged]]]:
    for time in sorted({event.time for event in events}):
        yield (time - size, time), [event for event in events if time - size <= event.time <= time]


def _result(job: Job, window: Window, by: ByKey, span: Span, members: list[Judged]) -> Result:
    start, end = span
    fields = [event.fields for event in members]
    row: dict[str, Any] = {"window_start": start, "window_end": end, **dict(zip(window.by, by, strict=True))}
    row |= {name: aggregate(expression, fields) for name, expression in window.aggregates.items()}
    if job.policy == "correct":
        row["revision"] = sum(is_straggler(window, event, span) for event in members)
    closes = end + window.size if window.type == "session" else end
    return Result(tuple(row[column] for column in job.sink_key), row, closes, tuple(members))


def is_straggler(window: Window, event: Judged, span: Span) -> bool:
    """Whether the event adds to a result's revision: for an aligned window, when it was late for that very one."""
    return span in event.missed if window.type in ("tumbling", "hopping") else bool(event.missed)
