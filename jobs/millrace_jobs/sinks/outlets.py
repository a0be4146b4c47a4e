"""A sink of the spec as something that takes rows: how they are encoded, spread and written."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from millrace_jobs.sinks.slots import Target, deliver

Encoder = Callable[[DataFrame, DataFrame | None], DataFrame]


@dataclass(frozen=True)
class Outlet:
    """One sink. `encode` turns rows, and rows that hold no longer, into what the target writes."""

    name: str
    encode: Encoder
    by: Column
    target: Target

    def deliver(self, rows: DataFrame, gone: DataFrame | None, batch: int, slots: int) -> int:
        return deliver(self.encode(rows, gone), self.by, self.target, batch, slots)
