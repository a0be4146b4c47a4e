"""What a change of a resource does: one generic comparison, which reads the fields' own declarations.

It compares plain data, so that a checkpoint can keep what its state depends on (`fingerprint`) and a later version of
the job can be held against it (`misfits`), also when the code is newer than the checkpoint. It knows no field by name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from millrace import units
from millrace.resources import ddl
from millrace.resources.checking import model_in, models_in
from millrace.resources.fields import Declaration, Eased, Effect, Model, declaration, yaml_name
from millrace.resources.jobs import StreamJobSpec
from millrace.resources.schemas import EASED

Plain = dict[str, Any]

_ORDER: tuple[Effect, ...] = get_args(Effect)
_ELSEWHERE = ("checkpoint",)
"""Parts of a job that say where the state is, not what it is: a checkpoint that was moved still fits."""


@dataclass(frozen=True)
class Change:
    """One field that differs, with its values as they are written in YAML."""

    path: str
    old: Any
    new: Any
    effect: Effect

    def __str__(self) -> str:
        return f"{self.path}: {_shown(self.old)} → {_shown(self.new)} ({self.effect})"


def compare(old: Model, new: Model) -> tuple[Change, ...]:
    """Every field that differs between two versions of one model."""
    return tuple(_changes(type(new), _plain(old), _plain(new), ""))


def worst(changes: Iterable[Change]) -> Effect | None:
    """The strictest effect among the changes; None where nothing changes."""
    return _strictest(change.effect for change in changes)


def fingerprint(spec: StreamJobSpec) -> Plain:
    """What the job's state depends on, as plain JSON."""
    kept = _state_relevant(StreamJobSpec, _plain(spec))
    return {name: part for name, part in kept.items() if name not in _ELSEWHERE}


def misfits(stored: Plain, spec: StreamJobSpec) -> tuple[Change, ...]:
    """The changes since the fingerprint was taken that its state does not fit."""
    changes = _changes(StreamJobSpec, stored, fingerprint(spec), "")
    return tuple(change for change in changes if change.effect == "new-state")


def _changes(model: type[Model], old: Plain, new: Plain, path: str) -> Iterator[Change]:
    for name, field in model.model_fields.items():
        written = yaml_name(name, field)
        if written not in old or written not in new or _same(old[written], new[written]):
            continue
        at, before, after = f"{path}.{written}".lstrip("."), old[written], new[written]
        said = declaration(field)
        if (inner := model_in(field.annotation)) and before is not None and after is not None:
            yield from _changes(inner, before, after, at)
        elif inner := models_in(field.annotation):
            yield from _list_changes(inner, said, before, after, at)
        else:
            yield Change(at, before, after, _effect(said, before, after))


def _same(old: Any, new: Any) -> bool:
    """Equal, and for the parts of a list in the same order too."""
    return bool(old == new) and (not isinstance(old, dict) or list(old) == list(new))


def _list_changes(inner: type[Model], said: Declaration, old: Plain, new: Plain, path: str) -> Iterator[Change]:
    """Elements that came, went, changed, and, where nothing else says so, changed places."""
    for name in old:
        if name not in new:
            yield Change(f"{path}[{name}]", old[name], None, _whole(inner, said, old[name]))
    for name in new:
        if name not in old:
            yield Change(f"{path}[{name}]", None, new[name], _whole(inner, said, new[name]))
        else:
            yield from _changes(inner, old[name], new[name], f"{path}[{name}]")
    before, after = [name for name in old if name in new], [name for name in new if name in old]
    if before != after:
        yield Change(path, before, after, said.change)


def _whole(inner: type[Model], said: Declaration, element: Plain) -> Effect:
    """What it does when an element comes or goes: as strict as the list, or as a field that the element has."""
    given = (
        declaration(field).change
        for name, field in inner.model_fields.items()
        if element.get(yaml_name(name, field)) is not None and field.default is None
    )
    return _strictest([said.change, *given]) or said.change


def _effect(said: Declaration, old: Any, new: Any) -> Effect:
    if said.eased and old is not None and new is not None and _CONDITIONS[said.eased](old, new):
        return EASED[said.eased]
    return said.change


def _strictest(effects: Iterable[Effect]) -> Effect | None:
    return max(effects, key=_ORDER.index, default=None)


def _plain(model: Model) -> Plain:
    """The model as YAML has it, but lists of parts as mappings, by what tells one part from another."""
    plain: Plain = model.model_dump(mode="json", by_alias=True)
    for name, field in type(model).model_fields.items():
        value, written = getattr(model, name), yaml_name(name, field)
        if isinstance(value, Model):
            plain[written] = _plain(value)
        elif models_in(field.annotation):
            plain[written] = _by_identity(value)
    return plain


def _by_identity(parts: Iterable[Model]) -> Plain:
    found: Plain = {}
    for part in parts:
        name, number = part.identity, 1
        while name in found:
            number += 1
            name = f"{part.identity}#{number}"
        found[name] = _plain(part)
    return found


def _state_relevant(model: type[Model], plain: Plain) -> Plain:
    """Of the data of a model, the fields whose change is, or may be, new state."""
    kept: Plain = {}
    for name, field in model.model_fields.items():
        written = yaml_name(name, field)
        value, relevant = plain[written], declaration(field).change == "new-state"
        if (inner := model_in(field.annotation)) and value is not None:
            value = _state_relevant(inner, value)
        elif inner := models_in(field.annotation):
            parts = {key: _state_relevant(inner, part) for key, part in value.items()}
            value = parts if relevant else {key: part for key, part in parts.items() if _says_something(part)}
            relevant = True
        if relevant or (isinstance(value, dict) and model_in(field.annotation) and value):
            kept[written] = value
    return kept


def _says_something(part: Plain) -> bool:
    return any(value is not None for value in part.values())


def _only_added(old: str, new: str) -> bool:
    before, after = ({column.name: column.type for column in ddl.parse(text)} for text in (old, new))
    return before.items() <= after.items()


_CONDITIONS: Mapping[Eased, Callable[[Any, Any], bool]] = {
    "columns are only added": _only_added,
    "neither version corrects": lambda old, new: "correct" not in (old, new),
    "it gets shorter": lambda old, new: units.parse_duration(new) < units.parse_duration(old),
    "it grows": lambda old, new: units.parse_bytes(new) > units.parse_bytes(old),
}


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)
