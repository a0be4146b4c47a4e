"""What every resource model is made of: the frozen base class, the declaration of a field, and rules between fields.

A field is declared once, with its meaning, its default as it is written in YAML, and what changing it does. The
planner, the CRDs and the reference page all read that declaration. Nothing in here knows a concrete resource.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, PydanticUndefined

Effect = Literal["live", "restart", "new-state"]
"""What changing a field does, from the mildest to the strictest."""

Eased = Literal["columns are only added", "neither version corrects", "it gets shorter", "it grows"]
"""A condition under which a change is milder than declared; changes.py knows how to judge each."""

Step = str | int
RULE_BROKEN = "rule_broken"


@dataclass(frozen=True)
class Problem:
    """A broken rule: where, below the model that holds the rule, and a sentence that says what would be right."""

    path: tuple[Step, ...]
    sentence: str

    def below(self, *path: Step) -> "Problem":
        return Problem((*path, *self.path), self.sentence)


@dataclass(frozen=True)
class Rule:
    """A rule between fields of one model, for Python and, where CEL can say it, for the API server."""

    at: str
    """The field (as written in YAML, with dots) that the sentence is about; empty for the model itself."""
    says: str
    holds: Callable[[Any], bool]
    cel: str | None = None

    def problems(self, model: "Model") -> Iterator[Problem]:
        if not self.holds(model):
            yield Problem(tuple(self.at.split(".")) if self.at else (), self.says)

    def validation(self) -> dict[str, str] | None:
        if self.cel is None:
            return None
        where = {"fieldPath": f".{self.at}"} if self.at else {}
        return {"rule": self.cel, "message": self.says, **where}


class UnknownValueError(Exception):
    """A rule asked for a field that is itself wrong, so the rule cannot be judged."""


def judged(problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems up to the first question that a wrong field leaves without an answer."""
    try:
        yield from problems
    except UnknownValueError:
        return


class Model(BaseModel):
    """Base of everything below a resource: frozen, strict, unknown fields refused, camelCase in YAML."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        validate_default=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()
    server_rules: ClassVar[tuple[dict[str, str], ...]] = ()
    """Rules that only the API server can judge, or that Python judges more finely elsewhere."""

    @classmethod
    def partial(cls, known: dict[str, Any]) -> Self:
        """A model of which only some fields are known; asking for another raises UnknownValueError."""
        model = cls.model_construct()
        model.__dict__.clear()
        model.__dict__.update(known)
        return model

    @property
    def identity(self) -> str:
        """What tells this one from the others of a list when two versions are compared."""
        raise NotImplementedError(f"{type(self).__name__} is not kept in lists")

    def problems(self) -> Iterator[Problem]:
        """Every broken rule of this model itself; a model with rules that need a loop adds them here."""
        for rule in self.rules:
            yield from judged(rule.problems(self))

    @model_validator(mode="after")
    def _keep_rules(self) -> Self:
        problems = tuple(self.problems())
        if problems:
            text = "; ".join(f"{'.'.join(map(str, p.path))} {p.sentence}".strip() for p in problems)
            raise PydanticCustomError(RULE_BROKEN, "{text}", {"text": text})
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core))
        validations = [v for rule in cls.rules if (v := rule.validation())] + [dict(r) for r in cls.server_rules]
        if validations:
            schema["x-kubernetes-validations"] = validations
        return schema

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in type(self).model_fields:
                raise UnknownValueError(name)
            return super().__getattr__(name)


def declared(
    meaning: str,
    *,
    change: Effect,
    default: Any = PydanticUndefined,
    eased: Eased | None = None,
    example: str | None = None,
    schema: dict[str, Any] | None = None,
    **constraints: Any,
) -> Any:
    """Declare a field: its meaning with its unit, its default as written in YAML, and what changing it does.

    `eased` names a condition under which a change is milder (see changes.py); `example` is shown where the
    field is missing; `schema` adds to the CRD's schema of the field.
    """
    extra: dict[str, Any] = {"x-change": change, **(schema or {})}
    if eased:
        extra["x-eased"] = eased
    if example:
        extra["x-example"] = example
    return Field(default, description=meaning, json_schema_extra=extra, **constraints)


@dataclass(frozen=True)
class Declaration:
    """What `declared` said about a field, read back."""

    change: Effect
    eased: Eased | None
    example: str | None


def declaration(field: FieldInfo) -> Declaration:
    extra: Any = field.json_schema_extra or {}
    return Declaration(extra["x-change"], extra.get("x-eased"), extra.get("x-example"))


def yaml_name(name: str, field: FieldInfo) -> str:
    """The field's name as it is written in YAML."""
    return field.alias or name
