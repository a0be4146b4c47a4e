"""What is counted about one partition in one batch. Every counted thing has its one name here."""

from collections.abc import Iterable

import msgspec

from millrace import metrics

LATENESS_SECONDS = metrics.JOB_EVENT_LATENESS.buckets
"""Upper bounds of the lateness histogram; one more bucket counts what is beyond the last."""


class Counts(msgspec.Struct, frozen=True):
    """read = malformed + future + on_time + late, and late = dropped + aside + corrected. Always."""

    read: int = 0
    malformed: int = 0
    future: int = 0
    on_time: int = 0
    late: int = 0
    dropped: int = 0
    aside: int = 0
    corrected: int = 0
    late_idle: int = 0
    """Of the late: those that only came too late because their partition had been given up as idle."""
    windows_missed: int = 0
    lost: int = 0
    """Records that retention took before they were read. Not part of read."""

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))

    def holds(self) -> bool:
        """Whether every event is accounted for."""
        return self.read == self.malformed + self.future + self.on_time + self.late and self.late == (
            self.dropped + self.aside + self.corrected
        )


class Account(msgspec.Struct, frozen=True):
    """One partition's share of one batch."""

    topic: str
    partition: int
    counts: Counts
    high: int | None
    """Largest event time so far, of this batch and all before; microseconds."""
    first_offset: int
    last_offset: int
    oldest: int | None = None
    """Smallest window end (aligned windows) or event time (others) that an event of this batch counts in."""
    reasons: dict[str, int] = {}
    lateness: list[int] = []
    lateness_sum: float = 0.0


class StateFile(msgspec.Struct, frozen=True):
    """A file of judged events, with the range of their times."""

    source: str
    path: str
    rows: int
    oldest: int
    newest: int
    bytes: int = 0


class Intake(msgspec.Struct, frozen=True):
    """What one task reports: its partitions' accounts and the files it wrote."""

    accounts: list[Account]
    files: list[StateFile]
    side: dict[str, list[str]]
    """Topic role (malformed, aside) → files with the records that go there."""


def add_all(counts: Iterable[Counts]) -> Counts:
    return sum(counts, start=Counts())


def add_lists(one: list[int], other: list[int]) -> list[int]:
    return [a + b for a, b in zip(one, other, strict=True)]
