"""The sql and python steps of a job, as queries over named inputs. Windows are not made here.

Steps run on the rows of a batch, so each must work row by row: what looks at several rows at once would depend on where
a batch ends. Such a step is refused before anything runs.
"""

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from millrace.errors import UserError
from millrace.resources import graph
from millrace.resources.jobs import StreamJobSpec
from millrace.resources.steps import Step

EVENT = "_event"
"""Carries an event's time and verdict through the steps before a window."""

_LOOKS_AROUND = {
    "Aggregate": "GROUP BY",
    "Distinct": "DISTINCT",
    "Deduplicate": "dropDuplicates",
    "Sort": "ORDER BY",
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Tail": "tail",
    "Window": "OVER",
    "Join": "JOIN",
    "Sample": "TABLESAMPLE",
    "Except": "EXCEPT",
    "Intersect": "INTERSECT",
    "Pivot": "PIVOT",
    "FlatMapGroupsInPandas": "groupBy().apply",
}


class UserCodeError(Exception):
    """The user's own function raised."""


def apply_steps(
    spark: SparkSession, spec: StreamJobSpec, numbers: range, frames: Mapping[str | int, DataFrame]
) -> DataFrame:
    """Run the steps of these numbers; `frames` are the sources by name, and earlier steps by number."""
    known = dict(frames)
    for number in numbers:
        known[number] = _apply(spark, spec, number, known)
    return known[numbers[-1]] if len(numbers) else _default(spec, numbers.start, known)


def _default(spec: StreamJobSpec, number: int, known: Mapping[str | int, DataFrame]) -> DataFrame:
    step = spec.transform[number] if number < len(spec.transform) else None
    if step is not None and step.input is not None:
        return _by_name(spec, step.input, known)
    return known[number - 1] if number - 1 in known else known[spec.sources[0].name]


def _by_name(spec: StreamJobSpec, name: str, known: Mapping[str | int, DataFrame]) -> DataFrame:
    numbers = [number for number, step in enumerate(spec.transform) if step.name == name and number in known]
    return known[numbers[-1]] if numbers else known[name]


def window_input(spec: StreamJobSpec, number: int, known: Mapping[str | int, DataFrame]) -> DataFrame:
    """The rows that the window step of this number takes."""
    return _default(spec, number, known)


def _apply(spark: SparkSession, spec: StreamJobSpec, number: int, known: Mapping[str | int, DataFrame]) -> DataFrame:
    step = spec.transform[number]
    where = f"spec.transform[{number}].{step.kind}"
    taken = _default(spec, number, known) if step.input or number or len(spec.sources) == 1 else None
    result = _sql(spark, spec, step, where, taken, known) if step.sql is not None else _python(step, where, taken)
    _check_rows_only(result, where, taken)
    return result


def _sql(
    spark: SparkSession,
    spec: StreamJobSpec,
    step: Step,
    where: str,
    taken: DataFrame | None,
    known: Mapping[str | int, DataFrame],
) -> DataFrame:
    for part, frame in known.items():
        name = part if isinstance(part, str) else spec.transform[part].name
        if name is not None:
            frame.createOrReplaceTempView(name)
    if taken is not None:
        taken.createOrReplaceTempView(graph.INPUT)
    try:
        return spark.sql(step.sql or "")
    except (AnalysisException, ParseException) as error:
        raise UserError(f"{where}: {first_line(error)}") from error


def _python(step: Step, where: str, taken: DataFrame | None) -> DataFrame:
    function = load_function(step.python.function if step.python else "", where)
    try:
        result = function(taken)
    except Exception as error:
        raise UserCodeError(f"{where}: {type(error).__name__}: {error}") from error
    if not isinstance(result, DataFrame):
        raise UserCodeError(f"{where}: the function must return a DataFrame, and returned {type(result).__name__}")
    return result


def load_function(name: str, where: str) -> Any:
    """The user's function by its name module:function."""
    module_name, _, function_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise UserError(
            f"{where}: module {module_name!r} cannot be imported ({error}): put it on PYTHONPATH or into the image."
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UserError(f"{where}: module {module_name!r} has no function {function_name!r}.")
    return function


def _check_rows_only(frame: DataFrame, where: str, taken: DataFrame | None) -> None:
    plan = _analyzed(frame)
    for node in _nodes(plan, None if taken is None else _analyzed(taken)):
        if node in _LOOKS_AROUND:
            raise UserError(
                f"{where}: {_LOOKS_AROUND[node]} would see the rows of one batch only, so its result would depend on "
                "where a batch ends; use a window step for it."
            )
    if not plan.deterministic():
        raise UserError(f"{where}: the step gives another result each time (rand, uuid, …); a repeated batch must not.")


def _analyzed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark shows a plan only as text


def _nodes(plan: Any, taken: Any) -> Iterator[str]:
    """The nodes that the step itself adds: below a view, and below the rows that it took, others are to answer."""
    name = str(plan.nodeName())
    if name == "View" or plan == taken:
        return
    yield name
    children = plan.children()
    for index in range(children.size()):
        yield from _nodes(children.apply(index), taken)


def first_line(error: Exception) -> str:
    """What Spark says, without the plan that it appends."""
    return str(error).strip().splitlines()[0]
