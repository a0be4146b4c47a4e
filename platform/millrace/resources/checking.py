"""Finds every mistake in a document at once, field by field, with the sentence that says what would be right.

The validation library stops judging a model's rules at its first bad field. Here each field is judged for itself, and
the rules are judged over what is left, so that one look shows everything there is to put right.
"""

from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from annotated_types import MaxLen, MinLen
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from millrace.resources.ddl import nearest
from millrace.resources.fields import Model, Problem, declaration, judged, yaml_name
from millrace.resources.sentences import entries, not_a_mapping, sentence

Path = tuple[str | int, ...]
_BAD = object()


def check(model: type[Model], data: dict[Any, Any]) -> Iterator[Problem]:
    """Every mistake in the data of a model: unknown, missing and wrong fields, and broken rules."""
    mistakes: list[Problem] = []
    _build(model, data, (), mistakes)
    yield from mistakes


def model_in(annotation: Any) -> type[Model] | None:
    """The model that a field holds, if it holds one, also where it may be absent."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    if get_origin(annotation) in (Union, UnionType):
        return next((found for arg in get_args(annotation) if (found := model_in(arg))), None)
    return None


def models_in(annotation: Any) -> type[Model] | None:
    """The model that a field holds a list of, if it does."""
    return model_in(get_args(annotation)[0]) if get_origin(annotation) is tuple else None


def _build(model: type[Model], data: Any, path: Path, mistakes: list[Problem]) -> Model:
    """The model with every field that is right; what is wrong goes to the mistakes."""
    if not isinstance(data, dict):
        mistakes.append(Problem(path, not_a_mapping(data, [yaml_name(*item) for item in model.model_fields.items()])))
        return model.partial({})
    fields = {yaml_name(name, field): name for name, field in model.model_fields.items()}
    for key in data:
        if key not in fields:
            says = f"is not a field; {nearest(str(key), fields, 'here there are')}"
            mistakes.append(Problem((*path, str(key)), says))
    values = {
        name: _value(model, name, data.get(written), (*path, written), mistakes) for written, name in fields.items()
    }
    partial = model.partial({name: value for name, value in values.items() if value is not _BAD})
    mistakes += [problem.below(*path) for problem in judged(partial.problems())]
    return partial


def _value(model: type[Model], name: str, written: Any, path: Path, mistakes: list[Problem]) -> Any:
    field = model.model_fields[name]
    if written is None:
        if field.is_required():
            mistakes.append(Problem(path, _missing(field)))
            return _BAD
        written = field.default
        if written is None:
            return None
    if inner := model_in(field.annotation):
        # a value that is no mapping at all tells nothing, not even whether the field was meant to be there
        return _build(inner, written, path, mistakes)
    if inner := models_in(field.annotation):
        return _items(inner, field, written, path, mistakes)
    return _leaf(model, name, written, path, mistakes)


def _items(inner: type[Model], field: FieldInfo, written: Any, path: Path, mistakes: list[Problem]) -> Any:
    if not isinstance(written, list | tuple):
        mistakes.append(Problem(path, "must be a list: write each entry on a line of its own, after '- '"))
        return _BAD
    least = next((mark.min_length for mark in field.metadata if isinstance(mark, MinLen)), 0)
    most = next((mark.max_length for mark in field.metadata if isinstance(mark, MaxLen)), len(written))
    if not least <= len(written) <= most:
        mistakes.append(Problem(path, entries(len(written), least, most)))
    return tuple(_build(inner, item, (*path, index), mistakes) for index, item in enumerate(written))


def _leaf(model: type[Model], name: str, written: Any, path: Path, mistakes: list[Problem]) -> Any:
    try:
        return _adapter(model, name).validate_python(written)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            below = [step for step in detail["loc"] if step != "[key]"]
            mistakes.append(Problem((*path, *below), sentence(detail)))
        return _BAD


@cache
def _adapter(model: type[Model], name: str) -> TypeAdapter[Any]:
    field = model.model_fields[name]
    kind: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    return TypeAdapter(kind, config=ConfigDict(strict=True))


def _missing(field: FieldInfo) -> str:
    meaning = (field.description or "").split(". ")[0].rstrip(".")
    example = declaration(field).example
    return f"is missing ({meaning})" + (f"; write for instance {example}" if example else "")
