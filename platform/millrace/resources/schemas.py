"""The models' schema in the form that the API server demands: structural, bounded, with nothing by reference.

It reads the declarations only; what a CRD is beside its schema is in crds.py.
"""

from typing import Any

from millrace.resources.fields import Eased, Effect, Model

Schema = dict[str, Any]

CHANGES: dict[Effect, str] = {
    "live": "takes effect at once, without a restart",
    "restart": "stops the job at a batch boundary and goes on from the checkpoint",
    "new-state": "does not fit the state: refused unless upgrade.mode is restart-empty",
}
EASED: dict[Eased, Effect] = {
    "columns are only added": "restart",
    "neither version corrects": "restart",
    "it gets shorter": "restart",
    "it grows": "live",
}
"""Under which condition a change is milder than its field says, and how mild."""

_DROPPED = ("title", "x-change", "x-eased", "x-example", "propertyNames", "$defs")


def structural(model: type[Model], changes: dict[Effect, str] = CHANGES) -> Schema:
    """The model's schema for a CRD; every description says the default and what changing the field does."""
    schema = model.model_json_schema(by_alias=True)
    return _node(schema, schema.get("$defs", {}), changes)


def _node(written: Schema, definitions: dict[str, Schema], changes: dict[Effect, str]) -> Schema:
    node = _resolved(written, definitions)
    described = _description(node, changes)
    made = {key: value for key, value in node.items() if key not in _DROPPED}
    if described:
        made["description"] = described
    _close(made)
    _plain_types(made)
    if "properties" in made:
        made["properties"] = {name: _node(of, definitions, changes) for name, of in made["properties"].items()}
        if made.get("default") == {}:
            made["default"] = defaults(made)
    for inner in ("items", "additionalProperties"):
        if isinstance(made.get(inner), dict):
            made[inner] = _node(made[inner], definitions, changes)
    return dict(sorted(made.items(), key=lambda item: _place(item[0])))


def defaults(schema: Schema) -> Schema:
    """What an empty mapping stands for, written out: the API server judges a default as it is written."""
    return {name: part["default"] for name, part in schema["properties"].items() if "default" in part}


def _resolved(written: Schema, definitions: dict[str, Schema]) -> Schema:
    """What a reference points to, and of 'this or null' the this; what stands beside it wins."""
    node = dict(written)
    if "anyOf" in node:
        (choice,) = [option for option in node.pop("anyOf") if option != {"type": "null"}]
        node = {**choice, **node}
    if "$ref" in node:
        target = definitions[node.pop("$ref").removeprefix("#/$defs/")]
        node = {**_resolved(target, definitions), **node}
    return node


def _close(node: Schema) -> None:
    """Unknown fields are pruned or refused by the API server itself; it allows no 'additionalProperties: false'."""
    if "properties" in node or node.get("x-kubernetes-preserve-unknown-fields"):
        node.pop("additionalProperties", None)
    if node.get("default", ...) is None:
        del node["default"]


def _plain_types(node: Schema) -> None:
    if "const" in node:
        node["enum"] = [node.pop("const")]
    for bound, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if bound in node:
            node[plain] = node[bound]
            node[bound] = True
    if isinstance(node.get("default"), tuple):
        node["default"] = list(node["default"])
    if "patternProperties" in node:
        # the API server knows no patterns for keys; where they matter, a rule of the field says them
        (node["additionalProperties"],) = node.pop("patternProperties").values()


def _description(node: Schema, changes: dict[Effect, str]) -> str:
    """The meaning, the default where it says something, and what a change does."""
    text = [str(node.get("description", "")).strip()]
    default = node.get("default")
    if default not in (None, {}, (), []):
        text.append(f"Default: {_shown(default)}.")
    group = "properties" in node and default == {}
    if node.get("x-change") and not group:
        text.append(f"A change {changes[node['x-change']]}{easing(node.get('x-eased'))}.")
    return " ".join(part for part in text if part)


def easing(condition: Eased | None) -> str:
    """When a change is milder than its field says, as the end of a sentence."""
    if condition is None:
        return ""
    return f"; if {condition}, " + ("it takes effect at once" if EASED[condition] == "live" else "a restart is enough")


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _place(key: str) -> int:
    """Type and description first, as people read them."""
    order = ("type", "description", "default", "enum", "required", "properties", "items")
    return order.index(key) if key in order else len(order)
