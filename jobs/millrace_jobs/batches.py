"""What a batch knows while it runs, and the ledger entry that it comes to. Reads and writes nothing but the clock."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from millrace_jobs import watermarks
from millrace_jobs.accounts import Account, Counts, StateFile
from millrace_jobs.ledger import Entry, PartitionEntry, Totals
from millrace_jobs.offsets import Partition
from millrace_jobs.plans import JobPlan

Counted = Mapping[str, int]


@dataclass
class Batch:
    """A batch while it runs: the entry before it, where it ends, and what its tasks reported."""

    number: int
    before: Entry | None
    ends: Mapping[Partition, int]
    accounts: Mapping[Partition, Account] = field(default_factory=dict)
    files: list[StateFile] = field(default_factory=list)
    side: dict[str, list[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started

    @property
    def slots(self) -> int:
        """The number of transactions of each sink, as it was fixed before this batch could run for the first time."""
        return self.before.slots if self.before else 1

    @cached_property
    def past(self) -> dict[Partition, PartitionEntry]:
        """Each partition as the entry before has it."""
        return {(one.topic, one.partition): one for one in self.before.partitions} if self.before else {}

    def gap(self, of: Partition) -> tuple[int, int]:
        """Where the batch starts in a partition, and the first offset that it really found there."""
        account, before, end = self.accounts.get(of), self.past.get(of), self.ends[of]
        found = account.first_offset if account else end
        return (before.end if before else found), found


@dataclass(frozen=True)
class Closing:
    """A batch that is done, on its way into the ledger."""

    batch: Batch
    plan: JobPlan
    silent_seconds: float
    """How long it has been since the batch before: so much longer has a partition been quiet that brought nothing."""
    lost: Mapping[Partition, int]

    def entry(
        self, watermark: int | None, files: list[StateFile], written: Counted, side: Counted, slots: int
    ) -> Entry:
        """The entry. `slots` holds for the next batch."""
        batch, past = self.batch, self.batch.past
        before = {of: one.quiet_seconds for of, one in past.items()}
        quiet = watermarks.quiet(before, set(batch.accounts), batch.ends, self.silent_seconds)
        partitions = [self._partition(of, past.get(of), quiet[of]) for of in sorted(batch.ends)]
        idle_after = self.plan.spec.stragglers.idle_after.total_seconds()
        return Entry(
            batch=batch.number,
            at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            watermark=watermark,
            partitions=partitions,
            idle=[of for of in sorted(batch.ends) if quiet[of] >= idle_after],
            files=files,
            written=dict(written),
            side=dict(side),
            totals=(batch.before.totals if batch.before else Totals()).plus(partitions, written, side),
            slots=slots,
            seconds=batch.seconds,
        )

    def _partition(self, of: Partition, before: PartitionEntry | None, quiet_seconds: float) -> PartitionEntry:
        account = self.batch.accounts.get(of)
        counts = (account.counts if account else Counts()) + Counts(lost=self.lost[of])
        if not counts.holds():
            raise RuntimeError(f"the account of {of} does not add up: {counts}")
        return PartitionEntry(
            source=self.plan.source_of(of[0]).name,
            topic=of[0],
            partition=of[1],
            start=self.batch.gap(of)[0],
            end=self.batch.ends[of],
            high=high_of(account, before.high if before else None),
            quiet_seconds=quiet_seconds,
            counts=counts,
            total=(before.total if before else Counts()) + counts,
            reasons=account.reasons if account else {},
            lateness=account.lateness if account else [],
            lateness_sum=account.lateness_sum if account else 0.0,
        )


def high_of(account: Account | None, before: int | None) -> int | None:
    """A partition's largest event time after a batch."""
    return before if account is None else account.high
