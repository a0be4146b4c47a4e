"""The API server takes good specs, fills in the defaults that Python has, and refuses bad ones with a sentence."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from kubernetes import client, dynamic

from millrace.resources import parse_object
from millrace.resources.crds import DEFINITIONS, rendered
from tests.e2e.kube import Namespace
from tests.unit.specs.broken import BROKEN, BROKEN_RULES, Broken
from tests.unit.specs.builders import JOB, SPECS, TOPIC, edited

pytestmark = pytest.mark.e2e

_VOLUME = edited(JOB, {"spec.checkpoint.volumeClaim": {"size": "10Gi"}})


@pytest.fixture(scope="module")
def crds(namespace: Namespace) -> Iterator[Namespace]:
    """The CRDs, applied; they stay, because others on the cluster may use them by then."""
    yield install(namespace)


def install(namespace: Namespace) -> Namespace:
    finder = dynamic.DynamicClient(namespace.api)
    kinds = finder.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    for definition in DEFINITIONS:
        body = yaml.safe_load(rendered(definition))
        kinds.server_side_apply(body=body, name=body["metadata"]["name"], field_manager="crds", force_conflicts=True)
        _wait_until_served(kinds, body["metadata"]["name"])
    return namespace


def _wait_until_served(kinds: Any, name: str) -> None:
    for event in kinds.watch(field_selector=f"metadata.name={name}", timeout=30):
        conditions = event["raw_object"].get("status", {}).get("conditions", [])
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            return
    raise AssertionError(f"{name} was not served within 30 s")


def created(namespace: Namespace, document: dict[str, Any], dry: bool = True) -> dict[str, Any]:
    """The resource as the API server would keep it; ApiException where it refuses."""
    body = edited(document, {"metadata.namespace": namespace.name})
    options: dict[str, Any] = {"field_validation": "Strict"} | ({"dry_run": "All"} if dry else {})
    at = ("millrace.io", "v1alpha1", namespace.name, f"{document['kind'].lower()}s")
    answer: Any = client.CustomObjectsApi(namespace.api).create_namespaced_custom_object(*at, body, **options)
    return dict(answer)


def refusal(namespace: Namespace, document: dict[str, Any]) -> str:
    with pytest.raises(client.ApiException) as refused:
        created(namespace, document)
    return str(json.loads(refused.value.body or "{}")["message"])


def good() -> list[dict[str, Any]]:
    """Small and whole specs; a time is text on the way to the API server, as kubectl sends it."""
    text = (SPECS / "whole.yaml").read_text(encoding="utf-8").replace("2026-01-31T08:00:00Z", '"2026-01-31T08:00:00Z"')
    return [JOB, TOPIC, *yaml.safe_load_all(text)]


def test_good_specs_get_the_defaults_that_python_has(crds: Namespace) -> None:
    for document in good():
        here = parse_object(edited(document, {"metadata.namespace": crds.name}))
        assert parse_object(created(crds, document)).spec == here.spec  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", [case for case in BROKEN if case.path != "metadata.namespace"], ids=str)
def test_what_the_api_server_can_see_it_refuses(crds: Namespace, case: Broken) -> None:
    if not case.server:
        assert created(crds, case.document)["kind"] == case.base
        return
    said = refusal(crds, case.document)
    if case in BROKEN_RULES:
        assert case.says in said


@pytest.mark.parametrize(
    ("base", "edits", "says"),
    [
        (TOPIC, {"spec.partitions": 3}, "cannot shrink"),
        (TOPIC, {"spec.partitions": 24}, None),
        (TOPIC, {"spec.replicas": 3}, "cannot change"),
        (TOPIC, {"spec.name": "other"}, "cannot change"),
        (_VOLUME, {"spec.checkpoint.volumeClaim.size": "5Gi"}, "cannot shrink"),
        (_VOLUME, {"spec.checkpoint.volumeClaim.size": "20Gi"}, None),
    ],
    ids=["fewer partitions", "more partitions", "replicas", "name", "smaller volume", "larger volume"],
)
def test_edits_that_cannot_be_done_are_refused(
    crds: Namespace, base: dict[str, Any], edits: dict[str, Any], says: str | None
) -> None:
    objects, plural = client.CustomObjectsApi(crds.api), f"{base['kind'].lower()}s"
    at = ("millrace.io", "v1alpha1", crds.name, plural, base["metadata"]["name"])
    stored = created(crds, base, dry=False)
    try:
        changed = edited(stored, edits)
        if says is None:
            objects.replace_namespaced_custom_object(*at, changed, dry_run="All")
            return
        with pytest.raises(client.ApiException, match=says):
            objects.replace_namespaced_custom_object(*at, changed, dry_run="All")
    finally:
        objects.delete_namespaced_custom_object(*at)
