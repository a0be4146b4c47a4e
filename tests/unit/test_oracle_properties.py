"""What must hold for any log: no split into batches and no speed of reading changes the answer."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.oracle.chains import expected_publications, final_table
from tests.oracle.check import check
from tests.oracle.hand import Event, hand_job, hand_log
from tests.oracle.model import Job, Log, Policy, WindowType
from tests.oracle.oracle import expect, table_at
from tests.oracle.perfect import perfect
from tests.oracle.results import results

pytestmark = pytest.mark.unit

# Small numbers, so that times meet, sessions touch and windows end at frontiers.
events: some.SearchStrategy[Event] = some.tuples(
    some.integers(0, 40).map(lambda half: half / 2), some.sampled_from(["a", "b", None]), some.integers(0, 3)
)
partitions = some.lists(some.lists(events, min_size=1, max_size=12), min_size=1, max_size=3)
jobs: some.SearchStrategy[Job] = some.builds(
    hand_job,
    some.sampled_from(get_args(WindowType)),
    some.sampled_from(get_args(Policy)),
    delay=some.sampled_from(["0s", "2s"]),
    lateness=some.just("4s"),
)
few = settings(max_examples=60, deadline=None)


@some.composite
def splits(draw: some.DrawFn, log: Log) -> list[list[int]]:
    """Batch ends that never go back and reach the end of the log, each partition at a speed of its own."""
    cuts = [sorted(draw(some.lists(some.integers(0, len(own)), min_size=4, max_size=4))) for own in log.partitions]
    return [*(list(ends) for ends in zip(*cuts, strict=True)), [len(own) for own in log.partitions]]


@few
@given(job=jobs, log=partitions.map(lambda found: hand_log(*found)), data=some.data())
def test_any_split_into_batches_ends_in_the_same_table(job: Job, log: Log, data: some.DataObject) -> None:
    published = expected_publications(job, log, data.draw(splits(log)))
    assert final_table(published) == {key: result.row for key, result in expect(job, log).table.items()}


@few
@given(job=jobs, log=partitions.map(lambda found: hand_log(*found)), data=some.data())
def test_a_faultless_job_passes_whatever_its_batches(job: Job, log: Log, data: some.DataObject) -> None:
    """That is: revisions rise, what is retracted stood there, and without corrections no key comes twice."""
    assert check(job, log, perfect(job, log, data.draw(splits(log)))) == []


@few
@given(job=jobs, log=partitions.map(lambda found: hand_log(*found)), data=some.data())
def test_what_comes_later_changes_no_verdict_on_what_was_before(job: Job, log: Log, data: some.DataObject) -> None:
    judgements = expect(job, log).judgements
    for ends in data.draw(splits(log)):
        assert table_at(job, judgements, ends) == expect(job, log.upto(ends)).table


@few
@given(job=jobs, found=partitions, data=some.data())
def test_the_numbers_of_the_partitions_do_not_matter(job: Job, found: list[list[Event]], data: some.DataObject) -> None:
    one, other = expect(job, hand_log(*found)), expect(job, hand_log(*data.draw(some.permutations(found))))
    assert one.totals == other.totals
    assert {key: result.row for key, result in one.table.items()} == {
        key: result.row for key, result in other.table.items()
    }


@few
@given(job=jobs, log=partitions.map(lambda found: hand_log(*found)))
def test_the_equation_holds_in_every_partition(job: Job, log: Log) -> None:
    for counts in expect(job, log).partition_totals.values():
        assert counts["read"] == counts["malformed"] + counts["future"] + counts["on_time"] + counts["late"]
        assert counts["late"] == counts["dropped"] + counts["aside"] + counts["corrected"]


@few
@given(log=partitions.map(lambda found: hand_log(*found)), window=some.sampled_from(get_args(WindowType)))
def test_enough_lateness_gives_what_no_lateness_at_all_would(log: Log, window: WindowType) -> None:
    """With corrections for ever, the closed windows are those over the whole log, stragglers and all."""
    corrected, patient = hand_job(window, "correct", lateness="1h"), hand_job(window, "drop", delay="1h")
    found = expect(corrected, log)
    assert found.totals["dropped"] == 0
    judged = [judgement.event for judgement in expect(patient, log).judgements if judgement.event]
    whole = {result.key: result.row for result in results(patient, judged)}
    assert all({**whole[key], "revision": result.row["revision"]} == result.row for key, result in found.table.items())
