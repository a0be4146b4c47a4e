"""A batch on its way into the ledger: what was silent grows quiet, what was given up is named, sums go on."""

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from millrace_jobs.accounts import Account, Counts
from millrace_jobs.batches import Batch, Closing
from millrace_jobs.intake import SourceRule
from millrace_jobs.judging import JudgeRule
from millrace_jobs.ledger import Entry
from millrace_jobs.plans import JobPlan
from tests.unit.jobs.test_batches import job

pytestmark = pytest.mark.unit

A, B = ("in", 0), ("in", 1)


def plan(idle_after: str = "1m") -> JobPlan:
    spec = job(stragglers={"idleAfter": idle_after}).spec
    rule = SourceRule("s", "in", pa.schema([]), (), "at", None, None, None, JudgeRule(None, 0, "drop", 0))
    return JobPlan("default", "j", spec, (rule,), None, None, frozenset(), frozenset(), StructType())


def account(read: int, high: int, first: int) -> Account:
    return Account("in", 0, Counts(read=read, on_time=read), high, first, first + read - 1)


def close(batch: Batch, silent: float, lost: int = 0) -> Entry:
    losses = dict.fromkeys(batch.ends, 0) | {A: lost}
    return Closing(batch, plan(), silent, losses).entry(7, [], {"out": 2}, {}, 2)


def test_totals_go_on_and_what_is_silent_grows_quiet_until_it_is_given_up() -> None:
    first = close(Batch(0, None, {A: 3, B: 0}, {A: account(3, 50, 0)}), 40)
    second = close(Batch(1, first, {A: 5, B: 0}, {A: account(2, 40, 3)}), 40)
    assert [one.total.read for one in second.partitions] == [5, 0]
    assert [one.quiet_seconds for one in second.partitions] == [0, 80]
    assert (first.idle, second.idle) == ([], [B])
    assert second.totals.written == {"out": 4}
    assert [(one.start, one.end) for one in second.partitions] == [(3, 5), (0, 0)]


def test_what_retention_took_is_counted_apart() -> None:
    first = close(Batch(0, None, {A: 3}, {A: account(3, 50, 0)}), 1)
    second = Batch(1, first, {A: 10}, {A: account(2, 60, 8)})
    assert second.gap(A) == (3, 8)
    assert close(second, 1, lost=5).partitions[0].total == Counts(read=5, on_time=5, lost=5)


def test_an_account_that_does_not_add_up_never_gets_into_the_ledger() -> None:
    wrong = Account("in", 0, Counts(read=3, on_time=2), 50, 0, 2)
    with pytest.raises(RuntimeError, match="does not add up"):
        close(Batch(0, None, {A: 3}, {A: wrong}), 1)
