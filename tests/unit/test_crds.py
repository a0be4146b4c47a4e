"""The CRDs are those that the models make, and have the form that the API server demands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from millrace.resources import reference
from millrace.resources.crds import DEFINITIONS, STREAMJOB, TOPIC, Definition, main, rendered
from millrace.resources.fields import Model, declaration
from millrace.resources.schemas import structural
from tests.unit.test_resources_broken import _models as models

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
_KNOWN = {
    "type", "description", "default", "enum", "required", "properties", "items", "additionalProperties", "pattern",
    "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "minItems", "maxItems", "minProperties",
    "maxProperties", "x-kubernetes-validations", "x-kubernetes-int-or-string", "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys", "x-kubernetes-preserve-unknown-fields",
}  # fmt: skip


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind)
def test_the_files_in_the_chart_are_up_to_date(definition: Definition) -> None:
    file = ROOT / "charts/millrace/crds" / f"{definition.plural}.yaml"
    assert file.read_text(encoding="utf-8") == rendered(definition), "run `make generate`"


def test_the_reference_page_is_up_to_date() -> None:
    assert (ROOT / "docs/reference.md").read_text(encoding="utf-8") == reference.page() + "\n", "run `make generate`"


def test_writing_them_gives_one_file_for_each_kind(tmp_path: Path) -> None:
    main(tmp_path / "crds")
    assert sorted(file.name for file in (tmp_path / "crds").iterdir()) == ["streamjobs.yaml", "topics.yaml"]
    reference.main(tmp_path / "docs/reference.md")
    assert "## StreamJob" in (tmp_path / "docs/reference.md").read_text(encoding="utf-8")


def nodes(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema below this one, with its path."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from nodes(part, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from nodes(schema[inner], f"{path}[]")


SPEC_NODES = [node for d in DEFINITIONS for node in nodes(structural(d.spec, d.changes), d.kind)]


def test_the_schema_is_structural() -> None:
    for path, node in SPEC_NODES:
        assert set(node) <= _KNOWN, path
        assert ("type" in node) != node.get("x-kubernetes-int-or-string", False), path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert node.get("exclusiveMinimum", True) is True, path


def test_every_list_text_and_mapping_that_a_rule_may_look_into_is_bounded() -> None:
    for path, node in SPEC_NODES:
        kind = node.get("type")
        if kind == "array":
            assert "maxItems" in node, path
        if kind == "string" or node.get("x-kubernetes-int-or-string"):
            assert "maxLength" in node or "enum" in node, path
        if "additionalProperties" in node:
            assert "maxProperties" in node, path


def test_every_description_says_the_default_and_what_a_change_does() -> None:
    schema = structural(STREAMJOB.spec)
    said = schema["properties"]["stragglers"]["properties"]["delay"]["description"]
    assert said.endswith("Default: 0s. A change stops the job at a batch boundary and goes on from the checkpoint.")
    for path, node in SPEC_NODES:
        assert node.get("description") or path.endswith("[]"), path
        if "default" in node and "properties" not in node and node["default"] not in ({}, []):
            assert "Default: " in node["description"], path


def test_every_field_of_every_model_is_declared() -> None:
    for model in (*models(STREAMJOB.spec), *models(TOPIC.spec)):
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"
            assert declaration(field).change in ("live", "restart", "new-state"), f"{model.__name__}.{name}"


def test_kubectl_shows_what_is_worth_looking_at() -> None:
    crd = yaml.safe_load(rendered(STREAMJOB))
    (version,) = crd["spec"]["versions"]
    shown = [column["name"] for column in version["additionalPrinterColumns"] if "priority" not in column]
    assert shown == ["State", "Ready", "Lag", "Dropped", "Restarts", "Age"]
    assert crd["spec"]["names"]["shortNames"] == ["sj"]
    assert crd["spec"]["names"]["categories"] == ["millrace"]
    assert version["subresources"]["scale"]["specReplicasPath"] == ".spec.executors.instances"


def test_rules_name_fields_that_exist() -> None:
    for path, node in SPEC_NODES:
        for rule in node.get("x-kubernetes-validations", []):
            part: Any = node
            for step in rule.get("fieldPath", "").strip(".").split(".") if rule.get("fieldPath") else []:
                part = part["properties"][step]
            assert rule["message"], path


def test_a_model_without_declarations_would_be_noticed() -> None:
    class Loose(Model):
        size: int

    with pytest.raises(KeyError):
        declaration(Loose.model_fields["size"])
