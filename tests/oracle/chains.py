"""The publications of results: each follows from the one before; and, when the batches are known, exactly which."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from tests.oracle.model import Job, Log
from tests.oracle.oracle import expect, table_at
from tests.oracle.reading import Key, Publication, Row, show, show_key, without_by
from tests.oracle.results import Result

Sequences = Mapping[Key, Sequence[Publication]]
Frozen = tuple[tuple[str, object], ...]


def final_table(published: Sequences) -> dict[Key, Row]:
    """The last record of each key, where that is not a withdrawal."""
    last = {key: publications[-1].row for key, publications in published.items()}
    return {key: row for key, row in last.items() if row is not None}


def table_differences(job: Job, expected: Mapping[Key, Result], found: Mapping[Key, Row]) -> Iterator[str]:
    for key, result in expected.items():
        if key not in found:
            yield f"result missing: {show(result.row)}"
        elif found[key] != result.row:
            yield f"result wrong at {show_key(job, key)}: {_changed(result.row, found[key])}"
    for key in found.keys() - expected.keys():
        yield f"result that should not be there: {show(found[key])}"


def once_differences(job: Job, published: Sequences) -> Iterator[str]:
    """Without corrections a key is published once, and carries neither revision nor retracts."""
    for key, publications in published.items():
        if len(publications) > 1:
            yield f"published {len(publications)} times: {show_key(job, key)}"
        if any(publication.row is None for publication in publications):
            yield f"withdrawn, though nothing is corrected: {show_key(job, key)}"
        if any(publication.retracts is not None for publication in publications):
            yield f"has retracts, though nothing is corrected: {show_key(job, key)}"


def chain_differences(job: Job, published: Sequences) -> Iterator[str]:
    """With corrections, whatever the batches were: revisions rise, and what is retracted is what stood there."""
    withdrawn = Counter((key, _freeze(job, row)) for key, row in _withdrawn(published))
    for key, publications in published.items():
        yield from _own_chain(job, key, publications)
        for publication in publications:
            for taken in _foreign(job, key, publication):
                if withdrawn[taken] == 0:
                    yield f"{show_key(job, key)} retracts what was not withdrawn: {show(dict(taken[1]))}"
                withdrawn[taken] -= 1


def _own_chain(job: Job, key: Key, publications: Sequence[Publication]) -> Iterator[str]:
    standing: Row | None = None
    revision = -1
    for publication in publications:
        if publication.row is None:
            if standing is None:
                yield f"withdrawn, though nothing stood there: {show_key(job, key)}"
        else:
            yield from _step(job, key, publication, standing, revision)
            revision = publication.row["revision"] or 0
        standing = publication.row


def _step(job: Job, key: Key, publication: Publication, standing: Row | None, revision: int) -> Iterator[str]:
    row = publication.row or {}
    if row["revision"] is None or row["revision"] <= revision:
        yield f"revision {row['revision']} follows revision {revision} at {show_key(job, key)}"
    if publication.retracts is None:
        yield f"has no retracts: {show(row)}"
    own = [entry for entry in publication.retracts or () if _entry_key(job, row, entry) == key]
    due = [] if standing is None else [without_by(job, standing)]
    if own != due:
        shown = "; ".join(map(show, own)) or "nothing"
        yield f"{show_key(job, key)} retracts {shown} of its own, but there stood {show(standing)}"


def _foreign(job: Job, key: Key, publication: Publication) -> Iterator[tuple[Key, Frozen]]:
    for entry in publication.retracts or ():
        other = _entry_key(job, publication.row or {}, entry)
        if other != key:
            yield other, _freeze(job, entry)


def _withdrawn(published: Sequences) -> Iterator[tuple[Key, Row]]:
    for key, publications in published.items():
        for before, after in pairwise(publications):
            if before.row is not None and after.row is None:
                yield key, before.row


def _entry_key(job: Job, row: Row, entry: Row) -> Key:
    return tuple((row | entry)[column] for column in job.sink_key)


def _freeze(job: Job, row: Row) -> Frozen:
    kept = without_by(job, row)
    return tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in kept.items())


def _changed(expected: Row, found: Row) -> str:
    names = [name for name in expected if expected[name] != found.get(name)]
    return ", ".join(f"{name} is {found.get(name)!r} and should be {expected[name]!r}" for name in names)


def expected_publications(job: Job, log: Log, ends: Iterable[Sequence[int]]) -> dict[Key, list[Publication]]:
    """What is published key by key when the batches end at these offsets: each batch turns one table into the next."""
    published: defaultdict[Key, list[Publication]] = defaultdict(list)
    before: Mapping[Key, Result] = {}
    judgements = expect(job, log).judgements
    for batch_ends in ends:
        after = table_at(job, judgements, batch_ends)
        for publication in _batch(job, before, after):
            published[publication.key].append(publication)
        before = after
    return dict(published)


def _batch(job: Job, before: Mapping[Key, Result], after: Mapping[Key, Result]) -> Iterator[Publication]:
    gone = [result for key, result in before.items() if key not in after or after[key].row != result.row]
    for key, result in after.items():
        if key not in before or before[key].row != result.row:
            yield Publication(key, result.row, _replaced(job, result, gone) if job.policy == "correct" else None)
    yield from (Publication(key, None) for key in before if key not in after)


def _replaced(job: Job, result: Result, gone: Iterable[Result]) -> tuple[Row, ...]:
    """A session replaces every one whose events it has taken over; any other result only the one at its key."""
    sessions = job.window is not None and job.window.type == "session"
    own = {(event.record.partition, event.record.offset) for event in result.events}
    return tuple(
        without_by(job, old.row)
        for old in gone
        if old.key == result.key
        or (sessions and own.issuperset((event.record.partition, event.record.offset) for event in old.events))
    )


def sequence_differences(job: Job, expected: Sequences, published: Sequences) -> Iterator[str]:
    """Every publication of every key, in order, as the batches make them."""
    for key in expected.keys() | published.keys():
        due, found = [_told(one) for one in expected.get(key, ())], [_told(one) for one in published.get(key, ())]
        if due != found:
            yield f"publications of {show_key(job, key)} are {found}, and should be {due}"


def _told(publication: Publication) -> str:
    """One publication as text that is the same for the same content; the order within retracts has no meaning."""
    retracts = publication.retracts
    told = "no list" if retracts is None else "; ".join(sorted(f"[{show(entry)}]" for entry in retracts)) or "nothing"
    return f"{show(publication.row)} retracting {told}" if publication.row is not None else "withdrawn"
