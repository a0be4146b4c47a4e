"""What a batch publishes: results whose window closed in it, and corrections of results that were published before.

Both are differences between two moments: the results at the watermark before, over the events before, and those at
the watermark now, over the events now. Nothing that was published has to be remembered: it can be computed again.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace_jobs.intake import TIME
from millrace_jobs.windows import END, MEMBERS, REVISION, START, Span, WindowQuery

NEW = "_new"
RETRACTS = "retracts"
_PRIOR = "_prior"


@dataclass(frozen=True)
class Moment:
    """The watermark before this batch and after it, and the oldest window end (or time) its new events reach into."""

    before: int
    now: int
    oldest_new: int | None


@dataclass(frozen=True)
class Publication:
    """Rows to publish; and, where results can vanish, rows that were published before and hold no longer."""

    rows: DataFrame
    replaced: DataFrame | None = None


def publish(query: WindowQuery, events: DataFrame, moment: Moment) -> Publication | None:
    """What this batch publishes, or None where nothing can have changed. `events` carry NEW: came in this batch."""
    if query.rule.type == "session":
        return _publish_sessions(query, events, moment)
    closing = _closing(query, events, Span(moment.before, moment.now)) if moment.now > moment.before else None
    if not query.corrects:
        return None if closing is None else Publication(_published(query, closing))
    rows = None if closing is None else closing.withColumn(RETRACTS, _nothing(query))
    if moment.oldest_new is not None and moment.oldest_new <= moment.before:
        corrections = _corrections(query, events, Span(moment.oldest_new - 1, moment.before))
        rows = corrections if rows is None else rows.unionByName(corrections)
    return None if rows is None else Publication(_published(query, rows))


def _closing(query: WindowQuery, events: DataFrame, span: Span) -> DataFrame:
    """Results whose window closes within the span."""
    if query.rule.is_aligned:
        return query.over_aligned(events, span)
    ends = query.times_of(events.where((F.col(TIME) > span.after) & (F.col(TIME) <= span.upto)))
    return query.over_slides(events.where(F.col(TIME) <= span.upto), ends)


def _corrections(query: WindowQuery, events: DataFrame, closed: Span) -> DataFrame:
    """Results that were closed before and that a new event changed, with the values that they replace."""
    touched = query.other(_touched(query, events, closed), F.col(END).alias("_at"))
    current = _at(query, events, touched, closed)
    prior = _at(query, events.where(~F.col(NEW)), touched, closed)
    old = query.other(prior, F.col(END).alias("_at"), _retracted(query).alias(_PRIOR))
    joined = current.join(old, query.same(F.col(END) == F.col("_at")), "left")
    retracted = F.filter(F.array(_PRIOR), lambda one: one.isNotNull())
    return joined.withColumn(RETRACTS, retracted).drop(*(set(old.columns) - set(current.columns)))


def _touched(query: WindowQuery, events: DataFrame, closed: Span) -> DataFrame:
    """Key and END of every closed result that a new event belongs to."""
    new = events.where(F.col(NEW))
    if query.rule.is_aligned:
        return query.members_of_aligned(new, closed).select(*query.keys(), END).distinct()
    stragglers = query.other(new.where(F.col(TIME) <= closed.upto), F.col(TIME).alias("_from"))
    ends = query.times_of(events.where(F.col(TIME) <= closed.upto))
    reached = F.col(END).between(F.col("_from"), F.col("_from") + F.lit(query.rule.size))
    return ends.join(stragglers, query.same(reached), "left_semi")


def _at(query: WindowQuery, events: DataFrame, touched: DataFrame, closed: Span) -> DataFrame:
    """The results of the touched keys and ends, over these events. Where there is no event there is no result."""
    is_touched = query.same(F.col(END) == F.col("_at"))
    if query.rule.is_aligned:
        members = query.members_of_aligned(events, closed)
        return query.summary(members.join(touched, is_touched, "left_semi"), [START, END])
    return query.over_slides(events, query.times_of(events).join(touched, is_touched, "left_semi"))


def _publish_sessions(query: WindowQuery, events: DataFrame, moment: Moment) -> Publication | None:
    gap = query.rule.size
    corrects = query.corrects and moment.oldest_new is not None and moment.oldest_new < moment.before - gap
    if moment.now <= moment.before and not corrects:
        return None
    closes = F.col(END) + F.lit(gap)
    closed = query.over_sessions(events).where(closes <= moment.now)
    if not corrects:
        rows = closed.where(closes > moment.before)
        return Publication(_published(query, rows.withColumn(RETRACTS, _nothing(query)) if query.corrects else rows))
    is_new = F.col(NEW) & (F.col(TIME) < moment.before - gap)
    touched = query.other(events.where(is_new)).distinct()
    prior_events = events.where(~F.col(NEW)).join(touched, query.same(F.lit(True)), "left_semi")
    prior = query.over_sessions(prior_events).where(closes <= moment.before)
    is_touched = closed.join(touched, query.same(F.lit(True)), "left_semi").where(closes <= moment.before)
    changed = _not_in(query, is_touched, prior).unionByName(closed.where(closes > moment.before))
    replaced = _not_in(query, prior, closed)
    return Publication(_published(query, _with_retracted_sessions(query, changed, replaced)), _times(query, replaced))


def _not_in(query: WindowQuery, sessions: DataFrame, others: DataFrame) -> DataFrame:
    """Sessions that are not, event for event, among the others."""
    marks = {name: f"_other{name}" for name in (START, END, MEMBERS)}
    listed = query.other(others, *(F.col(name).alias(mark) for name, mark in marks.items()))
    equal = [F.col(name) == F.col(mark) for name, mark in marks.items()]
    return sessions.join(listed, query.same(*equal), "left_anti")


def _with_retracted_sessions(query: WindowQuery, changed: DataFrame, replaced: DataFrame) -> DataFrame:
    """Each changed session with those that went into it."""
    old = query.other(replaced, F.col(START).alias("_from"), F.col(END).alias("_to"), _retracted(query).alias(_PRIOR))
    inside = query.same(F.col("_from") >= F.col(START), F.col("_to") <= F.col(END))
    kept = [F.first(name).alias(name) for name in (END, REVISION, *query.aggregates)]
    joined = changed.join(old, inside, "left")
    return joined.groupBy(*query.keys(), START).agg(*kept, F.collect_list(_PRIOR).alias(RETRACTS))


def _retracted(query: WindowQuery) -> Column:
    """What a correction says of a result that it replaces."""
    return F.struct(*_window_columns(), F.col(REVISION), *(F.col(name) for name in query.aggregates))


def _nothing(query: WindowQuery) -> Column:
    """An empty list of retracted results, of the right type."""
    return F.filter(F.array(_retracted(query)), lambda _: F.lit(False))


def _window_columns() -> list[Column]:
    return [F.timestamp_micros(START).alias("window_start"), F.timestamp_micros(END).alias("window_end")]


def _times(query: WindowQuery, rows: DataFrame) -> DataFrame:
    return rows.select(*_window_columns(), *query.keys(), *query.aggregates)


def _published(query: WindowQuery, rows: DataFrame) -> DataFrame:
    extra = [REVISION, RETRACTS] if query.corrects else []
    return rows.select(*_window_columns(), *query.keys(), *query.aggregates, *extra)
