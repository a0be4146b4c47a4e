"""Spreading a batch's rows over transactions: each row has its slot by its key, the same one when the batch runs again.

A slot is one writer with one transaction. Some slots of a batch may be done when a crash comes and others not; because
a row never changes its slot, the repeated batch completes exactly what is missing.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame

REPORT = pa.schema([("written", pa.int64())])
Batches = Iterator[pa.RecordBatch]


class Target(Protocol):
    """A place that rows can be written to, from any process."""

    def write(self, slot: int, batch: int, rows: Batches) -> int:
        """Write the slot's rows of this batch once and for all; returns how many there are, written now or before."""


def deliver(rows: DataFrame, by: Column, target: Target, batch: int, slots: int) -> int:
    """Write all rows; returns their number. `by` decides about slots and must not depend on the run."""
    spread = rows.coalesce(1) if slots == 1 else rows.repartition(slots, by)
    reports = spread.mapInArrow(_writer(target, batch), "written bigint").collect()
    return sum(report["written"] for report in reports)


def _writer(target: Target, batch: int) -> Callable[[Batches], Batches]:
    def write(rows: Batches) -> Batches:
        context = TaskContext.get()
        slot = context.partitionId() if context is not None else 0
        full = (one for one in rows if one.num_rows)
        first = next(full, None)
        written = 0 if first is None else target.write(slot, batch, _chain(first, full))
        yield pa.RecordBatch.from_pydict({"written": [written]}, schema=REPORT)

    return write


def _chain(first: pa.RecordBatch, rest: Batches) -> Batches:
    yield first
    yield from rest
