"""What a job does with events: windows, SQL and Python steps, in order.

Only what is declared, and the rules within one step; rules between steps are in wiring.py.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from millrace.resources.fields import Model, Problem, Rule, declared
from millrace.resources.types import (
    AggregateName,
    ColumnName,
    Expression,
    FunctionName,
    PositiveDuration,
    Query,
    StepName,
)

WindowType = Literal["tumbling", "hopping", "sliding", "session"]
StepKind = Literal["window", "sql", "python", "join"]

RESULT_COLUMNS = ("window_start", "window_end")
CORRECTION_COLUMNS = ("revision", "retracts")

_ONE_KIND = "[has(self.window), has(self.sql), has(self.python), has(self.join)].filter(given, given).size() == 1"
_LONGER = "self.every.contains('d') || self.size.contains('d') || duration(self.every) <= duration(self.size)"


class Window(Model):
    """Groups events by time and by columns, and aggregates each group."""

    type: WindowType = declared(
        "tumbling: one after the other; hopping: a new one `every` so often, overlapping; sliding: for each event, "
        "all within `size` before it; session: as long as no gap of `gap` comes.",
        change="new-state",
    )
    size: PositiveDuration | None = declared(
        "Length of a window (duration). For every type but session.", change="new-state", default=None
    )
    every: PositiveDuration | None = declared(
        "How often a hopping window starts (duration), at most `size`. Only for type hopping.",
        change="new-state",
        default=None,
    )
    gap: PositiveDuration | None = declared(
        "A session ends when nothing came for so long (duration). Only for type session.",
        change="new-state",
        default=None,
    )
    by: Annotated[tuple[ColumnName, ...], Field(strict=False, max_length=32)] = declared(
        "Columns that events are grouped by, besides their time.", change="new-state", default=()
    )
    aggregates: Annotated[dict[AggregateName, Expression], Field(min_length=1, max_length=64)] = declared(
        "Column of the result → Spark SQL aggregate that fills it.",
        change="new-state",
        example='{views: "count(*)"}',
        schema={
            "x-kubernetes-validations": [
                {
                    "rule": "self.all(name, name.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",
                    "message": "must have column names as keys: only letters, digits and '_', no digit first",
                }
            ]
        },
    )

    rules = (
        Rule(
            at="size",
            says="is missing: this window needs its length, for instance size: 1m",
            holds=lambda w: w.type == "session" or w.size is not None,
            cel="self.type == 'session' || has(self.size)",
        ),
        Rule(
            at="size",
            says="does not belong to a session window; its length follows from the events and from gap",
            holds=lambda w: w.type != "session" or w.size is None,
            cel="self.type != 'session' || !has(self.size)",
        ),
        Rule(
            at="every",
            says="is missing: a hopping window needs how often one starts, for instance every: 1m",
            holds=lambda w: w.type != "hopping" or w.every is not None,
            cel="self.type != 'hopping' || has(self.every)",
        ),
        Rule(
            at="every",
            says="belongs to hopping windows only; take it out, or set type: hopping",
            holds=lambda w: w.type == "hopping" or w.every is None,
            cel="self.type == 'hopping' || !has(self.every)",
        ),
        Rule(
            at="every",
            says="must not be longer than size, or events between two windows would be in none",
            holds=lambda w: w.every is None or w.size is None or w.every <= w.size,
            # CEL knows no days; those are left to the operator
            cel=f"!has(self.every) || !has(self.size) || {_LONGER}",
        ),
        Rule(
            at="gap",
            says="is missing: a session window needs the pause that ends a session, for instance gap: 30m",
            holds=lambda w: w.type != "session" or w.gap is not None,
            cel="self.type != 'session' || has(self.gap)",
        ),
        Rule(
            at="gap",
            says="belongs to session windows only; take it out, or set type: session",
            holds=lambda w: w.type == "session" or w.gap is None,
            cel="self.type == 'session' || !has(self.gap)",
        ),
    )

    @property
    def result_columns(self) -> tuple[str, ...]:
        return (*RESULT_COLUMNS, *self.by, *self.aggregates)

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        taken = {*RESULT_COLUMNS, *CORRECTION_COLUMNS}
        for index, column in enumerate(self.by):
            if column in taken:
                yield Problem(("by", index), f"names column {column!r} twice or takes a name that results have already")
            taken.add(column)
        for name in self.aggregates:
            if name in taken:
                yield Problem(("aggregates", name), "needs another name: the result has a column of this one already")


class PythonFunction(Model):
    """A function of the user's own: DataFrame in, DataFrame out."""

    function: FunctionName = declared("The function, as module:function.", change="restart")


class Step(Model):
    """One step of the transform: exactly one of window, sql, python."""

    name: StepName | None = declared(
        "Name by which later steps can refer to this step's result.", change="restart", default=None
    )
    input: StepName | None = declared(
        "Source or earlier step whose rows this step takes. Default: the step before, or for the first step the only "
        "source. A sql step sees it as `input`, and every source and named step before it by its own name.",
        change="restart",
        default=None,
    )
    window: Window | None = declared(
        "Aggregates over windows of event time. At most one step of a job can be a window.",
        change="new-state",
        default=None,
    )
    sql: Query | None = declared("A Spark SQL query.", change="restart", default=None)
    python: PythonFunction | None = declared("A Python function.", change="restart", default=None)
    join: dict[str, Any] | None = declared(
        "Not built yet: refused.",
        change="new-state",
        default=None,
        schema={"x-kubernetes-preserve-unknown-fields": True},
    )

    rules = (
        Rule(
            at="join",
            says="is not built yet; join inside a sql step over named inputs where no state is needed, or take it out",
            holds=lambda s: s.join is None,
            cel="!has(self.join)",
        ),
        Rule(
            at="",
            says="must have exactly one of window, sql and python; make a step of its own for each",
            holds=lambda s: sum(part is not None for part in (s.window, s.sql, s.python, s.join)) == 1,
            cel=_ONE_KIND,
        ),
    )

    @property
    def kind(self) -> StepKind:
        if self.window is not None:
            return "window"
        return "sql" if self.sql is not None else "python"

    @property
    def identity(self) -> str:
        """What tells this step from the others when two versions of a job are compared.

        The window is always the window, so that giving it a name does not cost its state.
        """
        return "window" if self.window is not None else self.name or self.kind
