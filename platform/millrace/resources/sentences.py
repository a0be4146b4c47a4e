"""What the validation library found, said to the person who wrote the file: what is there, and what would be right."""

from collections.abc import Collection
from typing import Any

from pydantic_core import ErrorDetails

from millrace.resources.ddl import nearest

_KINDS = {
    "string_type": "text: put it into quotes",
    "int_type": "a whole number without quotes",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number without quotes",
    "bool_type": "true or false",
    "tuple_type": "a list, for instance [a, b]",
    "dict_type": "a mapping of names to values",
    "finite_number": "a finite number",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("greater than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def sentence(error: ErrorDetails) -> str:
    """One sentence for one error of the validation library."""
    kind, found, context = error["type"], error["input"], error.get("ctx", {})
    if kind in _KINDS:
        return f"must be {_KINDS[kind]}; it is {shown(found)}"
    if kind in _BOUNDS:
        word, bound = _BOUNDS[kind]
        return f"must be {word} {context[bound]}; it is {shown(found)}"
    if kind == "literal_error":
        return _choice(found, str(context["expected"]))
    if kind in ("too_short", "too_long"):
        return entries(context["actual_length"], context.get("min_length", 0), context.get("max_length", 0))
    if kind == "string_too_long":
        return f"is too long: at most {context['max_length']} characters"
    return error["msg"]


def entries(count: int, least: int, most: int) -> str:
    """The sentence for a list or mapping with too few or too many entries."""
    if count < least:
        return f"needs at least {'one entry' if least == 1 else f'{least} entries'}"
    return f"has {count} entries; at most {most} are allowed"


def not_a_mapping(found: Any, fields: Collection[str]) -> str:
    return f"must be a mapping with fields such as {', '.join(list(fields)[:3])}; it is {shown(found)}"


def shown(value: Any) -> str:
    """A value as it would be written in YAML, short enough for a line."""
    if isinstance(value, bool):
        return str(value).lower()
    text = "empty" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _choice(found: Any, expected: str) -> str:
    choices = [choice.strip("'") for choice in expected.replace(" or ", ", ").split(", ")]
    if len(choices) == 1:
        return f"must be {choices[0]}; it is {shown(found)}"
    near = nearest(str(found), choices, "")
    hint = f" ({near})" if near.startswith("did") else ""
    return f"must be one of {', '.join(choices)}; it is {shown(found)}{hint}"
