"""One batch, from records to ledger entry. The order of its lines is what makes it exact.

Everything a batch does before its entry is written can be done again: files are new ones each time, sinks know the
numbers of the batches they hold. What it decides depends on the entry before it and on the batch's records alone.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.errors import UserError
from millrace_jobs import state, watermarks
from millrace_jobs.accounts import Account, Intake, StateFile
from millrace_jobs.batches import Batch, Closing, Counted, high_of
from millrace_jobs.crashes import reach
from millrace_jobs.files import Folder
from millrace_jobs.intake import TIME, IntakeRule, Role, reader
from millrace_jobs.judging import NEVER
from millrace_jobs.ledger import Entry, Ledger
from millrace_jobs.offsets import Partition, Positions, planned_offsets
from millrace_jobs.plans import JobPlan, rows_for_sinks, rows_for_window, stored_type, visible
from millrace_jobs.results import NEW, Moment, Publication, publish
from millrace_jobs.sinks.outlets import Outlet
from millrace_jobs.sinks.slots import Target, deliver
from millrace_jobs.windows import END, START

SWEEP_EVERY = 100  # batches between two looks for files that a failed task left behind


@dataclass(frozen=True)
class Outlets:
    """Where the job's rows go: its sinks, and the topics for what was refused or came late."""

    sinks: tuple[Outlet, ...]
    side: Mapping[Role, Target]


class Engine:
    """Runs the batches of one job, one after the other."""

    def __init__(
        self,
        spark: SparkSession,
        plan: JobPlan,
        folder: Folder,
        outlets: Outlets,
        positions: Positions,
        slots: int,
        done: Callable[[Entry], None],
    ) -> None:
        self._spark, self._plan, self._folder, self._outlets = spark, plan, folder, outlets
        self._positions, self._slots, self._done = positions, slots, done
        self._ledger = Ledger(folder)
        self._types = {source.name: stored_type(source) for source in plan.sources}
        self._heard_at = time.monotonic()
        self._swept: int | None = None

    @property
    def last(self) -> Entry | None:
        return self._ledger.last()

    def run(self, records: DataFrame, number: int) -> None:
        """Spark calls this for each batch; a batch whose entry is there was done before a crash."""
        before = self._ledger.last()
        expected = -1 if before is None else before.batch
        if number <= expected:
            self._positions.commit(before)
            return
        if number != expected + 1:
            raise UserError(
                f"The checkpoint is torn: its ledger ends at batch {expected} and Spark's log goes on at {number}. "
                "Restore the checkpoint from a copy, or start anew with upgrade.mode: restart-empty."
            )
        batch = Batch(number, before, planned_offsets(self._folder, number))
        with batch.phase("judge"):
            self._take(records, batch)
        reach("judged", number)
        with batch.phase("sinks"):
            side = self._deliver_side(batch)
        reach("side", number)
        watermark = self._advance(batch)
        written = self._publish(batch, watermark)
        with batch.phase("ledger"):
            files = self._keep(batch, watermark)
            entry = self._entry(batch, watermark, files, written, side)
            reach("before-ledger", number)
            self._ledger.write(entry)
        reach("after-ledger", number)
        self._positions.commit(entry)
        reach("after-position", number)
        self._sweep(batch, entry)
        self._done(entry)

    def _take(self, records: DataFrame, batch: Batch) -> None:
        """Read, judge and put down the batch's records."""
        before = batch.before
        rule = IntakeRule(
            folder=self._folder,
            batch=batch.number,
            sources=self._plan.sources,
            roles=self._plan.roles,
            highs=before.highs() if before else {},
            floor=NEVER if before is None or before.watermark is None else before.watermark,
        )
        reports = records.mapInArrow(reader(rule), "report string").collect()
        accounts: dict[Partition, Account] = {}
        for row in reports:
            intake = msgspec.json.decode(row["report"], type=Intake)
            accounts |= {(one.topic, one.partition): one for one in intake.accounts}
            batch.files += intake.files
            for role, names in intake.side.items():
                batch.side.setdefault(role, []).extend(names)
        batch.accounts = accounts

    def _deliver_side(self, batch: Batch) -> dict[str, int]:
        delivered: dict[str, int] = {}
        for role, target in self._outlets.side.items():
            names = batch.side.get(role, [])
            if names:
                rows = self._spark.read.schema(_side_type()).parquet(*map(self._folder.at, names))
                by = F.coalesce(F.col("value"), F.col("key"))
                delivered[role] = deliver(rows, by, target, batch.number, batch.slots)
        return delivered

    def _advance(self, batch: Batch) -> int | None:
        before = batch.before
        known = before.highs() if before else {}
        feeding = {source.topic for source in self._plan.sources if source.name in self._plan.feeding}
        highs = {one: high_of(batch.accounts.get(one), known.get(one)) for one in batch.ends if one[0] in feeding}
        given_up: set[Partition] = set(before.idle) - set(batch.accounts) if before else set()
        return watermarks.advance(before.watermark if before else None, highs, given_up, self._plan.delay)

    def _publish(self, batch: Batch, watermark: int | None) -> dict[str, int]:
        with batch.phase("results"):
            publication = self._publication(batch, watermark)
        if publication is None:
            return {}
        with batch.phase("sinks"):
            return self._deliver(batch, publication)

    def _publication(self, batch: Batch, watermark: int | None) -> Publication | None:
        if self._plan.query is None or self._plan.window_at is None:
            if not batch.files:
                return None
            frames: dict[str | int, DataFrame] = {
                source.name: self._read(source.name, batch.files, True) for source in self._plan.sources
            }
            return Publication(rows_for_sinks(self._spark, self._plan, visible(self._plan, frames)))
        if watermark is None:
            return None
        found = self._window_results(batch, watermark)
        if found is None or self._plan.window_at + 1 == len(self._plan.spec.transform):
            return found
        rows = rows_for_sinks(self._spark, self._plan, {self._plan.window_at: found.rows})
        return replace(found, rows=rows)

    def _window_results(self, batch: Batch, watermark: int) -> Publication | None:
        query = self._plan.query
        if query is None:
            return None
        before = batch.before.watermark if batch.before and batch.before.watermark is not None else NEVER
        reached = [one.oldest for one in batch.accounts.values() if one.oldest is not None]
        moment = Moment(before, watermark, min(reached, default=None))
        oldest = moment.corrects_from(query)
        if oldest is None and not query.can_close(before, watermark):
            return None
        after = before if oldest is None else min(before, oldest - 1)
        old = state.in_reach(query, batch.before.files if batch.before else [], after, watermark)
        new = state.in_reach(query, batch.files, after, watermark)
        if not old and not new:
            return None
        frames: dict[str | int, DataFrame] = {
            source.name: self._read(source.name, old, False).unionByName(self._read(source.name, new, True))
            for source in self._plan.sources
        }
        return publish(query, rows_for_window(self._spark, self._plan, frames), moment)

    def _read(self, source: str, files: list[StateFile], new: bool) -> DataFrame:
        paths = [self._folder.at(file.path) for file in files if file.source == source]
        kind = self._types[source]
        rows = self._spark.read.schema(kind).parquet(*paths) if paths else self._spark.createDataFrame([], kind)
        return rows.withColumn(NEW, F.lit(new))

    def _deliver(self, batch: Batch, publication: Publication) -> dict[str, int]:
        rows = publication.rows.persist() if len(self._outlets.sinks) > 1 else publication.rows
        try:
            return {
                outlet.name: outlet.deliver(rows, publication.replaced, batch.number, batch.slots)
                for outlet in self._outlets.sinks
            }
        finally:
            rows.unpersist()
            if publication.held is not None:
                publication.held.unpersist()

    def _keep(self, batch: Batch, watermark: int | None) -> list[StateFile]:
        """The files that the next batch will need, merged where there are many."""
        query = self._plan.query
        if query is None:
            return []
        files = [*(batch.before.files if batch.before else []), *batch.files]
        grace = self._plan.allowed_lateness if query.corrects else 0
        needed = state.still_needed(query, grace, files, watermark)
        merge = state.to_merge(query, grace, needed, watermark)
        if not merge:
            return needed
        rows = self._read(merge[0].source, merge, False)
        if query.rule.type == "session" and watermark is not None:
            rows = self._without_final_sessions(rows, needed, watermark - grace)
        source = next(one for one in self._plan.sources if one.name == merge[0].source)
        merged = state.rewrite(rows, self._folder, source.name, source.stored, batch.number)
        return [file for file in needed if file not in merge] + merged

    def _without_final_sessions(self, rows: DataFrame, needed: list[StateFile], upto: int) -> DataFrame:
        """Leave out events whose session nothing can reach any more."""
        query = self._plan.query
        if query is None:
            return rows
        every: dict[str | int, DataFrame] = {
            source.name: self._read(source.name, needed, False) for source in self._plan.sources
        }
        sessions = query.over_sessions(rows_for_window(self._spark, self._plan, every))
        still_open = sessions.where(F.col(END) + F.lit(query.rule.size) > upto)
        if self._plan.window_at == 0:
            return query.members_of_sessions(rows, still_open)
        # A step in between may have made the keys, so rows cannot be told apart by them: time alone decides.
        first = still_open.agg(F.min(START).alias(START)).collect()[0][START]
        return rows.where(F.lit(False)) if first is None else rows.where(F.col(TIME) >= first)

    def _entry(
        self, batch: Batch, watermark: int | None, files: list[StateFile], written: Counted, side: Counted
    ) -> Entry:
        now = time.monotonic()
        silent, self._heard_at = now - self._heard_at, now
        lost = {of: self._positions.lost(of, *batch.gap(of)) for of in batch.ends}
        return Closing(batch, self._plan, silent, lost).entry(watermark, files, written, side, self._slots)

    def _sweep(self, batch: Batch, entry: Entry) -> None:
        """Delete what no entry names any more."""
        kept = {file.path for file in entry.files}
        if self._swept is None or entry.batch - self._swept >= SWEEP_EVERY:
            self._swept = entry.batch
            gone = [*self._folder.names("state"), *self._folder.names("side")]
        else:
            past = [*(batch.before.files if batch.before else []), *batch.files]
            gone = [file.path for file in past] + [name for names in batch.side.values() for name in names]
        self._folder.delete(name for name in gone if name not in kept)


def _side_type() -> str:
    return "key binary, value binary, headers map<string,string>"
