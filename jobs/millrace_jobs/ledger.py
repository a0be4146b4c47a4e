"""The ledger: one entry per batch, written once, after everything else of the batch is done.

An entry is the commit of its batch: position, counts, watermark and state files change together or not at all. A
batch whose entry exists is never run again. Old entries are swept; totals live on in every newer one.
"""

from collections.abc import Iterable, Mapping

import msgspec

from millrace.errors import UserError
from millrace_jobs.accounts import Counts, StateFile, add_lists
from millrace_jobs.files import Folder

KEPT_ENTRIES = 200


class PartitionEntry(msgspec.Struct, frozen=True):
    """One source partition in one batch."""

    source: str
    topic: str
    partition: int
    start: int
    end: int
    high: int | None
    quiet_seconds: float
    """For how long, while the job was running, the partition has brought nothing."""
    counts: Counts
    total: Counts
    """The counts of this batch and of all before it."""
    reasons: dict[str, int]
    lateness: list[int]
    lateness_sum: float


class Totals(msgspec.Struct, frozen=True):
    """Sums over all entries up to this one that are not kept per partition, by source, sink or side topic."""

    reasons: dict[str, dict[str, int]] = {}
    lateness: dict[str, list[int]] = {}
    lateness_sum: dict[str, float] = {}
    written: dict[str, int] = {}
    side: dict[str, int] = {}

    def plus(
        self, partitions: Iterable[PartitionEntry], written: Mapping[str, int], side: Mapping[str, int]
    ) -> "Totals":
        lateness = dict(self.lateness)
        reasons = {source: dict(counts) for source, counts in self.reasons.items()}
        lateness_sum = dict(self.lateness_sum)
        for one in partitions:
            reasons[one.source] = _sum(reasons.get(one.source, {}), one.reasons)
            before = lateness.get(one.source, [])
            lateness[one.source] = (
                add_lists(before, one.lateness) if before and one.lateness else before or one.lateness
            )
            lateness_sum[one.source] = lateness_sum.get(one.source, 0.0) + one.lateness_sum
        return Totals(reasons, lateness, lateness_sum, _sum(self.written, written), _sum(self.side, side))


class Entry(msgspec.Struct, frozen=True):
    """All that a batch leaves behind."""

    batch: int
    at: str
    watermark: int | None
    """No window that ends at or before it is open any more; microseconds."""
    partitions: list[PartitionEntry]
    idle: list[tuple[str, int]]
    """Partitions that do not hold the watermark back in the next batch."""
    files: list[StateFile]
    written: dict[str, int]
    side: dict[str, int]
    totals: Totals
    slots: int
    """How many transactions each sink's records of the next batch are spread over."""
    seconds: dict[str, float] = {}

    def sources(self) -> dict[str, Counts]:
        """Each source's counts over all batches so far."""
        found: dict[str, Counts] = {}
        for one in self.partitions:
            found[one.source] = found.get(one.source, Counts()) + one.total
        return found

    def highs(self) -> dict[tuple[str, int], int]:
        return {(one.topic, one.partition): one.high for one in self.partitions if one.high is not None}


class Ledger:
    """The entries below one folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._last: Entry | None = None

    def last(self) -> Entry | None:
        """The newest entry, or None for a job that has not finished a batch."""
        if self._last is None:
            names = [name for name in self._folder.names("ledger") if name.endswith(".json")]
            if names:
                self._last = self._read(max(names))
        return self._last

    def write(self, entry: Entry) -> None:
        self._folder.write(_name(entry.batch), msgspec.json.encode(entry))
        self._last = entry
        self._folder.delete([_name(entry.batch - KEPT_ENTRIES)])

    def _read(self, name: str) -> Entry:
        content = self._folder.read(name)
        try:
            return msgspec.json.decode(content or b"", type=Entry)
        except msgspec.DecodeError as error:
            raise UserError(
                f"The ledger entry {self._folder.at(name)} cannot be read ({error}): restore the checkpoint from a "
                "copy, or start the job anew with upgrade.mode: restart-empty."
            ) from error


def _name(batch: int) -> str:
    return f"ledger/{batch:012d}.json"


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
