"""The reference page of both resources, made from the models: `python -m millrace.resources.reference` writes it.

Nothing on the page is by hand; a test compares it with what this module makes.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from millrace import units
from millrace.resources.checking import model_in, models_in
from millrace.resources.fields import Model, declaration, yaml_name
from millrace.resources.jobs import StreamJob, StreamJobSpec
from millrace.resources.metadata import API_VERSION, Resource
from millrace.resources.schemas import Schema, easing, structural
from millrace.resources.topics import Topic, TopicSpec

_INTRODUCTION = f"""\
# Reference: the fields of StreamJob and Topic

<!-- Made from platform/millrace/resources by `make generate`; edit the models, not this page. -->

Both kinds are of `apiVersion: {API_VERSION}`. What is not written has its default; a field that is not listed
here is refused. The last column says what it does to change a field while the job runs:

| change | what it does |
|---|---|
| live | takes effect at once, without a restart |
| restart | the job stops at a batch boundary and goes on from its checkpoint |
| new-state | the state of the old version does not fit; refused unless `upgrade.mode` is `restart-empty` |

| type | how it is written |
|---|---|
| duration | numbers with units, largest first: `d`, `h`, `m`, `s`, `ms`; for instance `1h30m` or `500ms` |
| size | bytes, or a number with `Ki`, `Mi`, `Gi`, `Ti`, `Pi` (1024) or `k`, `M`, `G`, `T`, `P` (1000), as in `10Gi` |
| cpu | cores, or thousandths of a core with `m`; for instance `"2"` or `500m` |
"""
_TOPIC_NOTE = """
For a Topic, `live` and `restart` both take effect at once, and `new-state` is not possible: make a new Topic.
"""
_PATTERNS = {units.DURATION_PATTERN: "duration", units.BYTES_PATTERN: "size", units.CPU_PATTERN: "cpu"}


@dataclass(frozen=True)
class Row:
    """One field as the page shows it."""

    path: str
    type: str
    default: str
    meaning: str
    change: str

    def __str__(self) -> str:
        cells = (f"`{self.path}`", self.type, self.default, self.meaning, self.change)
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page() -> str:
    """The whole page as Markdown."""
    parts = [
        _INTRODUCTION,
        *_resource(StreamJob, StreamJobSpec),
        *_resource(Topic, TopicSpec),
    ]
    return "\n".join(parts)


def _resource(resource: type[Resource], spec: type[Model]) -> Iterator[str]:
    yield f"## {resource.__name__}\n\n{getdoc(resource)}"
    if resource is Topic:
        yield _TOPIC_NOTE
    yield from _section(spec, structural(spec), "spec")


def _section(model: type[Model], schema: Schema, path: str) -> Iterator[str]:
    """A heading, what the part is for, its fields, its rules, and then the parts below it."""
    yield f"\n### `{path}`\n\n{getdoc(model)}\n"
    yield "| field | type | default | meaning | change |\n|---|---|---|---|---|"
    below: list[tuple[type[Model], Schema, str]] = []
    for name, field in model.model_fields.items():
        written = yaml_name(name, field)
        part = schema["properties"][written]
        yield str(_row(written, field, part))
        if inner := model_in(field.annotation):
            below.append((inner, part, f"{path}.{written}"))
        elif inner := models_in(field.annotation):
            below.append((inner, part["items"], f"{path}.{written}[]"))
    yield from _rules(model)
    for inner, part, at in below:
        yield from _section(inner, part, at)


def _rules(model: type[Model]) -> Iterator[str]:
    said = [(rule.at, rule.says) for rule in model.rules]
    said += [(rule.get("fieldPath", "").lstrip("."), rule["message"]) for rule in model.server_rules]
    if said:
        yield "\nWhat is refused, and why:\n"
    for at, says in said:
        yield f"- {f'`{at}` ' if at else ''}{says}."


def _row(written: str, field: FieldInfo, schema: Schema) -> Row:
    said = declaration(field)
    change = "see its fields" if field.default == {} and model_in(field.annotation) else said.change
    return Row(written, _type(schema), _default(field), field.description or "", change + easing(said.eased))


def _type(schema: Schema) -> str:
    rules = " ".join(rule["rule"] for rule in schema.get("x-kubernetes-validations", []))
    if named := next((name for pattern, name in _PATTERNS.items() if pattern in rules), None):
        return named
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    if kind == "object":
        return "mapping to text" if "additionalProperties" in schema else "mapping"
    return {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(kind, kind) + _range(schema)


def _range(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is None or most is None:
        return ""
    above = "above " if schema.get("exclusiveMinimum") else ""
    return f", {above}{_number(least)} to {_number(most)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else str(value)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value: Any = field.default
    if value is None or value in ({}, ()):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def main(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path("docs/reference.md"))
