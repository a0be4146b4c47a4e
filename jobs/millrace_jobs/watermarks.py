"""How the watermark moves from batch to batch: the slowest partition holds it back, unless it has been given up.

Pure: a batch's watermark depends on the entry before it and on what the batch read, never on the clock on the wall.
Whether a partition is given up is decided when an entry is written, and holds from the next batch on.
"""

from collections.abc import Iterable, Mapping, Set

Partition = tuple[str, int]


def advance(
    before: int | None, highs: Mapping[Partition, int | None], given_up: Set[Partition], delay: int
) -> int | None:
    """The watermark after a batch. It never goes back, and a partition without any valid event holds it where it is."""
    holding = [high for partition, high in highs.items() if partition not in given_up]
    if not holding or None in holding:
        return before
    reached = min(high for high in holding if high is not None) - delay
    return reached if before is None else max(before, reached)


def quiet(
    before: Mapping[Partition, float], heard: Set[Partition], every: Iterable[Partition], elapsed: float
) -> dict[Partition, float]:
    """For how long each partition has brought nothing, counted only while the job runs."""
    return {one: 0.0 if one in heard else before.get(one, 0.0) + elapsed for one in every}
