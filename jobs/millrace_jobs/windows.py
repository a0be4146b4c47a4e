"""The results of windows over judged events, as ordinary DataFrame queries: which results there are, and their values.

What is published at a watermark is a function of the events and of the watermark alone. When something is published,
and what it corrects, is decided in results.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from millrace_jobs.intake import FIRST, LATE, TIME
from millrace_jobs.judging import NEVER, WindowRule

START, END = "_start", "_end"
REVISION, MEMBERS = "revision", "_members"
FOREVER = 2**62


@dataclass(frozen=True)
class Span:
    """Times after `after`, up to and including `upto`."""

    after: int
    upto: int


@dataclass(frozen=True)
class WindowQuery:
    """A window step: how events are grouped, and the aggregates over each group."""

    rule: WindowRule
    by: tuple[str, ...]
    aggregates: Mapping[str, str]
    corrects: bool

    def members_of_aligned(self, events: DataFrame, ends: Span) -> DataFrame:
        """Each event once for each of its windows that end within the span, with START and END."""
        size, every = self.rule.size, self.rule.every
        # Only ends k·every + size exist; the span's borders are moved onto them, so that the query stays simple.
        lowest = (max(ends.after, NEVER + size) - size) // every * every + every + size
        highest = (min(ends.upto, FOREVER) - size) // every * every + size
        last = F.col(TIME) - F.expr(f"pmod({TIME}, {every}L)") + F.lit(size)
        if self.rule.type == "tumbling":
            found = events.where(F.col(FIRST).between(lowest, highest)).withColumn(END, F.col(FIRST))
        else:
            low, high = F.greatest(F.col(FIRST), F.lit(lowest)), F.least(last, F.lit(highest))
            in_reach = events.where(low <= high)
            found = in_reach.withColumn(END, F.explode(F.sequence(low, high, F.lit(every))))
        return found.withColumn(START, F.col(END) - F.lit(size))

    def over_sessions(self, events: DataFrame, also: Sequence[str] = ()) -> DataFrame:
        """Every session of the events: maximal chains in which each event is less than the gap after the one before.

        Events that differ in one of the columns `also` are kept apart.
        """
        in_order = Over.partitionBy(*self.keys(), *also).orderBy(TIME)
        pause = F.col(TIME) - F.lag(TIME).over(in_order)
        opens = F.when(pause < F.lit(self.rule.size), 0).otherwise(1)
        chained = events.withColumn("_opens", opens).withColumn("_chain", F.sum("_opens").over(in_order))
        times = [F.min(TIME).alias(START), (F.max(TIME) + F.lit(self.rule.size)).alias(END)]
        return self.summary(chained, [*also, "_chain"], times).drop("_chain")

    def members_of_sessions(self, events: DataFrame, sessions: DataFrame) -> DataFrame:
        """The events that are in one of these sessions."""
        chosen = self.other(sessions, F.col(START), F.col(END))
        inside = (F.col(TIME) >= F.col(START)) & (F.col(TIME) < F.col(END))
        return events.join(chosen, self.same(inside), "left_semi")

    def can_close(self, before: int, now: int) -> bool:
        """Whether the watermark's move can close anything at all."""
        if not self.rule.is_aligned or before == NEVER:
            return now > before
        return (now - self.rule.size) // self.rule.every > (before - self.rule.size) // self.rule.every

    def members_of_slides(self, events: DataFrame, ends: DataFrame) -> DataFrame:
        """For each row of `ends` (the by columns and END), the events of its key within `size` before it."""
        size = self.rule.size
        # Events and ends meet in buckets of the window's size: an end looks into its own and the one before.
        bucket = F.col(TIME) - F.expr(f"pmod({TIME}, {size}L)")
        end_bucket = F.col(END) - F.expr(f"pmod({END}, {size}L)")
        looks = F.explode(F.array(end_bucket, end_bucket - F.lit(size))).alias("_look")
        looking = self.other(ends, F.col(END), looks)
        within = F.col(TIME).between(F.col(END) - F.lit(size), F.col(END))
        met = self.same(F.col("_bucket") == F.col("_look"), within)
        found = events.withColumn("_bucket", bucket).join(looking, met)
        return found.withColumn(START, F.col(END) - F.lit(size))

    def times_of(self, events: DataFrame) -> DataFrame:
        """The distinct times of each key: the ends of its sliding windows."""
        return events.select(*self.keys(), F.col(TIME).alias(END)).distinct()

    def keys(self) -> list[Column]:
        return [F.col(f"`{name}`") for name in self.by]

    def other(self, rows: DataFrame, *more: Column) -> DataFrame:
        """The by columns under other names, so that two frames of this window can be joined."""
        return rows.select(*(key.alias(f"_by_{index}") for index, key in enumerate(self.keys())), *more)

    def same(self, *more: Column) -> Column:
        """The condition that a row and one of `other` have the same key; a null is a key like any other."""
        pairs = [key.eqNullSafe(F.col(f"_by_{index}")) for index, key in enumerate(self.keys())]
        return reduce(and_, [*more, *pairs])

    def summary(self, members: DataFrame, group: Sequence[str], more: Sequence[Column] = ()) -> DataFrame:
        columns = [*more, *(F.expr(text).alias(name) for name, text in self.aggregates.items())]
        if self.corrects:
            columns += [self._revision().alias(REVISION), F.count(F.lit(1)).alias(MEMBERS)]
        return members.groupBy(*self.keys(), *group).agg(*columns)

    def _revision(self) -> Column:
        """How many stragglers a result contains."""
        late = F.col(END) <= F.col(LATE) if self.rule.is_aligned else F.col(LATE) == F.lit(1)
        return F.count_if(late)
