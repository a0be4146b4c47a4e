"""What a batch publishes: results whose window closed in it, and corrections of results that were published before.

Both are differences between two moments: the results at the watermark before, over the events before, and those at
the watermark now, over the events now. Nothing that was published has to be remembered: it can be computed again. Where
corrections are due, both moments are computed in one pass, over rows that carry which moment they count for.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from millrace_jobs.intake import TIME
from millrace_jobs.windows import END, MEMBERS, REVISION, START, Span, WindowQuery

NEW = "_new"
RETRACTS = "retracts"
_NOW, _TOUCHED, _HOME = "_now", "_touched", "_home"


@dataclass(frozen=True)
class Moment:
    """The watermark before this batch and after it, and the oldest window end (or time) its new events reach into."""

    before: int
    now: int
    oldest_new: int | None

    def corrects_from(self, query: WindowQuery) -> int | None:
        """Where corrections begin, or None where no event of this batch can change what was published."""
        shut = self.before - query.rule.size if query.rule.type == "session" else self.before
        reaches_back = query.corrects and self.oldest_new is not None and self.oldest_new <= shut
        return self.oldest_new if reaches_back else None


@dataclass(frozen=True)
class Publication:
    """Rows to publish; and, where results can vanish, rows that were published before and hold no longer."""

    rows: DataFrame
    replaced: DataFrame | None = None
    held: DataFrame | None = None
    """What both are made of, held in memory until they are written."""


def publish(query: WindowQuery, events: DataFrame, moment: Moment) -> Publication | None:
    """What this batch publishes, or None where nothing can have changed. `events` carry NEW: came in this batch."""
    oldest = moment.corrects_from(query)
    if oldest is None and moment.now <= moment.before:
        return None
    if query.rule.type == "session":
        return _sessions(query, events, moment) if oldest is None else _corrected_sessions(query, events, moment)
    if oldest is None:
        closing = query.summary(_members(query, events, Span(moment.before, moment.now)), [START, END])
        return Publication(_published(query, closing.withColumn(RETRACTS, _none(query)) if query.corrects else closing))
    touched = _touched_members(query, events, Span(oldest - 1, moment.now), moment.before)
    return Publication(_published(query, _with_what_it_replaces(query, touched, moment.before)))


def _members(query: WindowQuery, events: DataFrame, span: Span) -> DataFrame:
    if query.rule.is_aligned:
        return query.members_of_aligned(events, span)
    return query.members_of_slides(events, _ends(query, events, span))


def _ends(query: WindowQuery, events: DataFrame, span: Span) -> DataFrame:
    return query.times_of(events.where((F.col(TIME) > span.after) & (F.col(TIME) <= span.upto)))


def _touched_members(query: WindowQuery, events: DataFrame, span: Span, before: int) -> DataFrame:
    """The members of every result that closes now, or that was closed before and that a new event belongs to."""
    new = events.where(F.col(NEW))
    if query.rule.is_aligned:
        reached = query.members_of_aligned(new, Span(span.after, before)).select(*query.keys(), END).distinct()
        touched = query.other(reached, F.col(END).alias("_at"))
        return _keep(query, query.members_of_aligned(events, span), touched, F.col(END) == F.col("_at"), before)
    stragglers = query.other(new.where(F.col(TIME) <= before), F.col(TIME).alias("_at")).distinct()
    reach = F.col(END).between(F.col("_at"), F.col("_at") + F.lit(query.rule.size))
    ends = _keep(query, _ends(query, events, span), stragglers, reach, before)
    return query.members_of_slides(events, ends.select(*query.keys(), END).distinct())


def _keep(query: WindowQuery, rows: DataFrame, touched: DataFrame, at: Column, before: int) -> DataFrame:
    """Rows that close now or are touched. A row that several stragglers touch may come several times for sliding."""
    names = rows.columns
    joined = rows.join(F.broadcast(touched.withColumn(_TOUCHED, F.lit(True))), query.same(at), "left")
    return joined.where((F.col(END) > before) | F.col(_TOUCHED).isNotNull()).select(*(f"`{name}`" for name in names))


def _with_what_it_replaces(query: WindowQuery, members: DataFrame, before: int) -> DataFrame:
    """Each result, now and, where it was published before, then."""
    then = (~F.col(NEW)) & (F.col(END) <= before)
    both = members.withColumn(_NOW, F.explode(F.array(F.lit(True), F.lit(False)))).where(F.col(_NOW) | then)
    # A sliding window is there only if an event stands at its end.
    stands = F.max(F.col(TIME) == F.col(END)).alias("_stands")
    results = query.summary(both, [START, END, _NOW], [] if query.rule.is_aligned else [stands])
    was = ~F.col(_NOW) if query.rule.is_aligned else ~F.col(_NOW) & F.col("_stands")
    values = F.struct(REVISION, *query.aggregates)
    pairs = results.groupBy(*query.keys(), START, END).agg(
        F.first(F.when(F.col(_NOW), values), ignorenulls=True).alias("_values"),
        F.collect_list(F.when(was, _retracted(query))).alias(RETRACTS),
    )
    return pairs.select(*query.keys(), START, END, "_values.*", RETRACTS)


def _sessions(query: WindowQuery, events: DataFrame, moment: Moment) -> Publication:
    closes = F.col(END) + F.lit(query.rule.size)
    closing = query.over_sessions(events).where((closes > moment.before) & (closes <= moment.now))
    return Publication(_published(query, closing.withColumn(RETRACTS, _none(query)) if query.corrects else closing))


def _corrected_sessions(query: WindowQuery, events: DataFrame, moment: Moment) -> Publication:
    """Sessions then and now, side by side: each of then lies within exactly one of now, be that closed or open."""
    gap = F.lit(query.rule.size)
    marked = _mark_touched(query, events, moment.before - query.rule.size)
    moments = F.explode(F.array(F.lit(True), F.lit(False)))
    both = marked.withColumn(_NOW, moments).where(F.col(_NOW) | (F.col(_TOUCHED) & ~F.col(NEW)))
    sessions = query.over_sessions(both, [_NOW, _TOUCHED])
    known = sessions.where(F.col(_NOW) | (F.col(END) + gap <= moment.before))
    so_far = (
        Over.partitionBy(*query.keys())
        .orderBy(F.col(START), F.col(_NOW).desc())
        .rowsBetween(Over.unboundedPreceding, Over.currentRow)
    )
    homed = known.withColumn(_HOME, F.max(F.when(F.col(_NOW), F.col(START))).over(so_far))
    whole = F.struct(START, END, MEMBERS, REVISION, *query.aggregates)
    pairs = homed.groupBy(*query.keys(), _HOME, _TOUCHED).agg(
        F.first(F.when(F.col(_NOW), whole), ignorenulls=True).alias("_is"),
        F.collect_list(F.when(~F.col(_NOW), whole)).alias("_was"),
    )
    changed = pairs.where(~_unchanged()).persist()
    closes = F.col(f"_is.{END}") + gap
    due = changed.where((closes <= moment.now) & (F.col(_TOUCHED) | (closes > moment.before)))
    rows = due.select(*query.keys(), "_is.*", F.transform("_was", lambda old: _retracted(query, old)).alias(RETRACTS))
    replaced = changed.select(*query.keys(), F.explode("_was").alias("_old")).select(*query.keys(), "_old.*")
    columns: list[Column | str] = [*_window_columns(), *query.keys(), *query.aggregates]
    return Publication(_published(query, rows), replaced.select(*columns), changed)


def _unchanged() -> Column:
    """One session then and one now, with the same events: a session only ever gains events."""
    old = F.try_element_at("_was", F.lit(1))
    same = [old[name].eqNullSafe(F.col(f"_is.{name}")) for name in (START, END, MEMBERS)]
    return (F.size("_was") == 1) & same[0] & same[1] & same[2]


def _mark_touched(query: WindowQuery, events: DataFrame, upto: int) -> DataFrame:
    """Events with a mark on those of keys that a new event touches in closed territory."""
    names = events.columns
    touched = query.other(events.where(F.col(NEW) & (F.col(TIME) <= upto))).distinct()
    joined = events.join(F.broadcast(touched.withColumn(_TOUCHED, F.lit(True))), query.same(F.lit(True)), "left")
    return joined.select(*(f"`{name}`" for name in names), F.col(_TOUCHED).isNotNull().alias(_TOUCHED))


def _retracted(query: WindowQuery, old: Column | None = None) -> Column:
    """What a correction says of a result that it replaces."""
    values = [F.col(name) if old is None else old[name].alias(name) for name in (REVISION, *query.aggregates)]
    return F.struct(*_window_columns(old), *values)


def _none(query: WindowQuery) -> Column:
    """An empty list of retracted results, of the right type."""
    return F.filter(F.array(_retracted(query)), lambda _: F.lit(False))


def _window_columns(old: Column | None = None) -> list[Column]:
    start, end = (F.col(START), F.col(END)) if old is None else (old[START], old[END])
    return [F.timestamp_micros(start).alias("window_start"), F.timestamp_micros(end).alias("window_end")]


def _published(query: WindowQuery, rows: DataFrame) -> DataFrame:
    extra = [REVISION, RETRACTS] if query.corrects else []
    return rows.select(*_window_columns(), *query.keys(), *query.aggregates, *extra)
