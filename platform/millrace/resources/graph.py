"""Which step takes which source or step, as far as the spec tells without Spark.

A query is read for the names after FROM and JOIN only. Where something cannot be told, the answer is "not known", never
a guess. It judges nothing: the rules are in wiring.py.
"""

import re
from typing import TYPE_CHECKING

from millrace.resources import ddl
from millrace.resources.fields import UnknownValueError
from millrace.resources.steps import CORRECTION_COLUMNS, Step

if TYPE_CHECKING:
    from millrace.resources.jobs import StreamJobSpec

INPUT = "input"
"""What a sql step calls its own input."""

_NOT_SQL = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_TABLE = r"`?(\w+)`?(?:\s+(?:as\s+)?`?(?!on\b|join\b|where\b|group\b|order\b|left\b|right\b|inner\b|full\b)\w+`?)?"
_TABLES = re.compile(rf"\b(?:from|join)\s+({_TABLE}(?:\s*,\s*{_TABLE})*)", re.IGNORECASE)
_FIRST_WORD = re.compile(r"`?(\w+)")


def tables(query: str) -> set[str]:
    """The names that stand after FROM and JOIN, in lower case, because Spark finds tables without regard to case."""
    found: set[str] = set()
    for match in _TABLES.finditer(_NOT_SQL.sub(" ", query)):
        words = (_FIRST_WORD.match(part.strip()) for part in match.group(1).split(","))
        found |= {word.group(1).lower() for word in words if word}
    return found


def visible(spec: "StreamJobSpec", index: int) -> list[str]:
    """The names that the step of this number can take: sources, and named steps before it."""
    names = [_name(part) for part in (*spec.sources, *spec.transform[:index])]
    return [name for name in names if name]


def window_index(spec: "StreamJobSpec") -> int | None:
    """The number of the first window step."""
    for index, step in enumerate(spec.transform):
        if "window" in step.__dict__ and step.window is not None:
            return index
    return None


def taken(spec: "StreamJobSpec", index: int) -> set[str | int]:
    """What a step takes: sources by name, steps by number. Raises UnknownValueError where its fields do not tell."""
    step = spec.transform[index]
    if sum(part is not None for part in (step.window, step.sql, step.python)) != 1:
        raise UnknownValueError("kind")
    names = {name.lower(): name for name in visible(spec, index)}
    queried = tables(step.sql) if step.sql is not None else {INPUT}
    found: set[str | int] = {_resolve(spec, index, names[word]) for word in queried if word in names}
    if INPUT in queried or step.input is not None:
        found |= _own_input(spec, index)
    return found


def feeding(spec: "StreamJobSpec", index: int) -> set[str]:
    """The sources whose events reach this step, as far as can be told."""
    found: set[str] = set()
    for part in taken(spec, index):
        found |= {part} if isinstance(part, str) else feeding(spec, part)
    return found


def used(spec: "StreamJobSpec") -> set[str]:
    """The sources that some step takes. Generous: a query that cannot be followed uses every name in it."""
    found: set[str] = set()
    for index, step in enumerate(spec.transform):
        found |= {part for part in taken(spec, index) if isinstance(part, str)}
        if step.sql is not None:
            words = {word.lower() for word in re.findall(r"\w+", step.sql)}
            found |= {name for name in visible(spec, index) if name.lower() in words}
    return found


def unused_steps(spec: "StreamJobSpec") -> list[int]:
    """The steps before the last whose result no later step takes."""
    found: set[str | int] = set()
    words: set[str] = set()
    for index, step in enumerate(spec.transform):
        found |= taken(spec, index)
        words |= {word.lower() for word in re.findall(r"\w+", step.sql or "")}
    free = [index for index in range(len(spec.transform) - 1) if index not in found]
    return [index for index in free if str(spec.transform[index].name).lower() not in words]


def input_columns(spec: "StreamJobSpec", index: int) -> list[str] | None:
    """The columns that a step's input has, or None where only Spark can tell."""
    step = spec.transform[index]
    if step.sql is not None:
        return None
    return _columns(spec, next(iter(_own_input(spec, index))))


def result_columns(spec: "StreamJobSpec") -> list[str] | None:
    """The columns that the sinks get, or None where only Spark can tell."""
    if spec.transform:
        return _columns(spec, len(spec.transform) - 1)
    return _columns(spec, spec.sources[0].name) if len(spec.sources) == 1 else None


def _columns(spec: "StreamJobSpec", part: str | int) -> list[str] | None:
    if isinstance(part, str):
        return _source_columns(spec, part)
    window = spec.transform[part].window
    if window is None:
        return None
    corrected = CORRECTION_COLUMNS if spec.stragglers.policy == "correct" else ()
    return [*window.result_columns, *corrected]


def _source_columns(spec: "StreamJobSpec", name: str) -> list[str] | None:
    try:
        return next([column.name for column in s.columns] for s in spec.sources if s.name == name)
    except ddl.DdlError:
        return None


def _own_input(spec: "StreamJobSpec", index: int) -> set[str | int]:
    """The step's input: the one it names, else the step before, else the only source."""
    step = spec.transform[index]
    if step.input is not None:
        return {_resolve(spec, index, step.input)}
    if index > 0:
        return {index - 1}
    if len(spec.sources) == 1:
        return {spec.sources[0].name}
    raise UnknownValueError(INPUT)


def _resolve(spec: "StreamJobSpec", index: int, name: str) -> str | int:
    for number, step in enumerate(spec.transform[:index]):
        if _name(step) == name:
            return number
    if name in (_name(source) for source in spec.sources):
        return name
    raise UnknownValueError(name)


def _name(part: Step | object) -> str | None:
    return part.__dict__.get("name")
