"""The few SQL aggregates that the oracle evaluates itself, over the fields of the events of one result."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.oracle.model import FieldType
from tests.oracle.parsing import Fields

_CALL = re.compile(r"(?P<function>[a-z_]+(?:\(collect_set)?)\((?P<distinct>distinct )?(?P<column>\*|\w+)\){1,2}")

# Over the values of a column that are not null, as SQL has it.
_FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": lambda values: sum(values) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "avg": lambda values: float(sum(values)) / len(values) if values else None,
    "sort_array(collect_set": lambda values: sorted(set(values)),
}


def _read(expression: str) -> tuple[str, bool, str]:
    match = _CALL.fullmatch(expression.strip().lower())
    if match is None or match["function"] not in _FUNCTIONS:
        raise ValueError(f"the oracle cannot evaluate {expression!r}")
    return match["function"], match["distinct"] is not None, match["column"]


def aggregate(expression: str, events: Sequence[Fields]) -> Any:
    """The value of one aggregate over the events of one result."""
    function, distinct, column = _read(expression)
    if column == "*":
        return len(events)
    values = [event[column] for event in events if event[column] is not None]
    return _FUNCTIONS[function](list(set(values)) if distinct else values)


def result_type(expression: str, schema: Mapping[str, FieldType]) -> FieldType:
    """The type of an aggregate's value (of its elements, for a set): what check.py reads output by."""
    function, _, column = _read(expression)
    if function == "count":
        return "long"
    return "double" if function == "avg" else schema[column]
