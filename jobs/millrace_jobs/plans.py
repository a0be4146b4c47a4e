"""A job's spec compiled once, at the start, into what every batch needs. What Spark can refuse is refused here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from millrace.errors import UserError
from millrace.resources import graph
from millrace.resources.jobs import StreamJob, StreamJobSpec
from millrace.resources.sources import Source
from millrace.resources.steps import Window
from millrace_jobs.intake import FIRST, LATE, TIME, Role, SourceRule
from millrace_jobs.judging import JudgeRule, WindowRule
from millrace_jobs.results import NEW, Moment, publish
from millrace_jobs.steps import EVENT, apply_steps, first_line
from millrace_jobs.times import micros
from millrace_jobs.windows import WindowQuery


@dataclass(frozen=True)
class JobPlan:
    """What a batch needs to know. Holds no connection and no state."""

    namespace: str
    name: str
    spec: StreamJobSpec
    sources: tuple[SourceRule, ...]
    query: WindowQuery | None
    window_at: int | None
    feeding: frozenset[str]
    """The sources whose events reach the window; their partitions hold its watermark."""
    roles: frozenset[Role]
    result: StructType
    """The columns that the sinks get."""

    @property
    def delay(self) -> int:
        return micros(self.spec.stragglers.delay)

    @property
    def allowed_lateness(self) -> int:
        return micros(self.spec.stragglers.allowed_lateness) if self.spec.stragglers.allowed_lateness else 0

    def source_of(self, topic: str) -> SourceRule:
        return next(source for source in self.sources if source.topic == topic)


def compile_job(spark: SparkSession, job: StreamJob) -> JobPlan:
    """Compile and try every step on no rows at all: a mistake is told before anything has run."""
    spec = job.spec
    window_at = graph.window_index(spec)
    feeding = frozenset(graph.feeding(spec, window_at)) if window_at is not None else frozenset()
    query = None if window_at is None else _query(spec)
    sources = tuple(_source_rule(spark, spec, source, window_at, feeding, query) for source in spec.sources)
    roles: set[Role] = {"malformed"} if spec.malformed is not None else set()
    if spec.stragglers.policy == "aside":
        roles.add("aside")
    name, nothing = job.metadata, StructType()
    plan = JobPlan(name.namespace, name.name, spec, sources, query, window_at, feeding, frozenset(roles), nothing)
    return replace(plan, result=_try_on_nothing(spark, plan))


def rows_for_window(spark: SparkSession, plan: JobPlan, frames: dict[str | int, DataFrame]) -> DataFrame:
    """The judged events as the window step takes them: after the steps before it, their times beside them."""
    if plan.window_at is None:
        raise ValueError("the job has no window")
    if plan.window_at == 0:
        return apply_steps(spark, plan.spec, range(0), frames)
    hidden = [TIME, *([FIRST] if plan.query and plan.query.rule.is_aligned else []), NEW]
    hidden += [LATE] if plan.query and plan.query.corrects else []
    wrapped: dict[str | int, DataFrame] = {
        name: frame.withColumn(EVENT, F.struct(*hidden)).drop(*hidden) if name in plan.feeding else frame
        for name, frame in frames.items()
    }
    rows = apply_steps(spark, plan.spec, range(plan.window_at), wrapped)
    if EVENT not in rows.columns:
        raise UserError(
            f"spec.transform[{plan.window_at - 1}]: the step before a window must keep the column {EVENT}, which "
            f"carries the event's time; add {EVENT} to its columns."
        )
    return rows.select("*", f"{EVENT}.*").drop(EVENT)


def rows_for_sinks(spark: SparkSession, plan: JobPlan, frames: dict[str | int, DataFrame]) -> DataFrame:
    """What the sinks get: the rows after the last step. `frames` has the window's results, if there is a window."""
    start = 0 if plan.window_at is None else plan.window_at + 1
    return apply_steps(spark, plan.spec, range(start, len(plan.spec.transform)), frames)


def stored_type(source: SourceRule) -> StructType:
    return from_arrow_schema(source.stored)


def _query(spec: StreamJobSpec) -> WindowQuery:
    window = spec.window
    if window is None:
        raise ValueError("the job has no window")
    corrects = spec.stragglers.policy == "correct"
    return WindowQuery(_window_rule(window), window.by, dict(window.aggregates), corrects)


def _window_rule(window: Window) -> WindowRule:
    length = window.gap if window.type == "session" else window.size
    if length is None:
        raise ValueError("a window has a size or a gap")
    every = window.every if window.every is not None else length
    return WindowRule(window.type, micros(length), micros(every))


def _source_rule(
    spark: SparkSession,
    spec: StreamJobSpec,
    source: Source,
    window_at: int | None,
    feeding: frozenset[str],
    query: WindowQuery | None,
) -> SourceRule:
    schema = _arrow_schema(source)
    at, lateness = source.event_time, spec.stragglers.allowed_lateness
    feeds = source.name in feeding
    # Only a window right after the source tells which columns are needed; a step in between may need any of them.
    direct = feeds and window_at == 0
    kept = _needed(spark, query, schema.names) if direct and query is not None else tuple(schema.names)
    return SourceRule(
        name=source.name,
        topic=source.topic,
        schema=schema,
        kept=kept,
        time=at.column if at else None,
        sent=at.clock.sent if at and at.clock else None,
        received=at.clock.received if at and at.clock else None,
        max_future_skew=micros(at.max_future_skew) if at else None,
        judge=JudgeRule(
            query.rule if feeds and query is not None else None,
            micros(spec.stragglers.delay),
            spec.stragglers.policy,
            micros(lateness) if lateness else 0,
        ),
    )


def _arrow_schema(source: Source) -> pa.Schema:
    try:
        return to_arrow_schema(cast(StructType, StructType.fromDDL(source.schema_)), timezone="UTC")
    except (AnalysisException, ParseException) as error:
        raise UserError(f"spec.sources.{source.name}.schema: {first_line(error)}") from error


def _needed(spark: SparkSession, query: WindowQuery, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that a window's keys and aggregates read."""
    used = {name.lower() for name in query.by}
    for name, text in query.aggregates.items():
        used |= _references(spark, name, text)
    return tuple(column for column in columns if column.lower() in used)


def _references(spark: SparkSession, name: str, text: str) -> set[str]:
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001 - PySpark has no parser of its own
    try:
        leaves = parser.parseExpression(text).collectLeaves()
    except (AnalysisException, ParseException) as error:
        raise UserError(f"spec.transform aggregates.{name}: {first_line(error)}") from error
    found: list[Any] = [leaves.apply(index) for index in range(leaves.size())]
    return {
        leaf.nameParts().head().lower() for leaf in found if leaf.getClass().getSimpleName() == "UnresolvedAttribute"
    }


def _try_on_nothing(spark: SparkSession, plan: JobPlan) -> StructType:
    empty: dict[str | int, DataFrame] = {
        source.name: spark.createDataFrame([], stored_type(source)).withColumn(NEW, F.lit(True))
        for source in plan.sources
    }
    if plan.query is None or plan.window_at is None:
        return rows_for_sinks(spark, plan, visible(plan, empty)).schema
    try:
        publication = publish(plan.query, rows_for_window(spark, plan, empty), Moment(0, 1, 0))
    except (AnalysisException, ParseException) as error:
        raise UserError(f"spec.transform[{plan.window_at}].window: {first_line(error)}") from error
    if publication is None:
        raise RuntimeError("a window that closes publishes")
    return rows_for_sinks(spark, plan, {plan.window_at: publication.rows}).schema


def visible(plan: JobPlan, frames: dict[str | int, DataFrame]) -> dict[str | int, DataFrame]:
    """The sources as a job without a window sees them: the declared columns alone."""
    return {source.name: frames[source.name].select(*source.kept) for source in plan.sources}
