"""The chart as text: every value is explained, the schema knows every value, and rules and dashboards cannot drift."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from millrace_operator.commands.tiny import manifests
from millrace_operator.desired.role import PODS

pytestmark = pytest.mark.unit

REPOSITORY = Path(__file__).resolve().parents[2]
CHARTS = sorted(path.parent for path in REPOSITORY.glob("charts/*/Chart.yaml"))
CHART = REPOSITORY / "charts/millrace"
FREE = {"resources", "nodeSelector", "labels"}  # what lies in these is Kubernetes' own


def paths(values: dict[str, Any], before: str = "") -> set[str]:
    found = set()
    for key, value in values.items():
        found.add(f"{before}{key}")
        if isinstance(value, dict) and key not in FREE:
            found |= paths(value, f"{before}{key}.")
    return found


def schema_paths(schema: dict[str, Any], whole: dict[str, Any], before: str = "") -> set[str]:
    found = set()
    for key, part in schema.get("properties", {}).items():
        found.add(f"{before}{key}")
        if "$ref" in part:
            part = whole["definitions"][part["$ref"].rpartition("/")[2]]
        if key not in FREE:
            found |= schema_paths(part, whole, f"{before}{key}.")
    return found


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_the_schema_knows_every_value_and_no_other(chart: Path) -> None:
    schema = json.loads((chart / "values.schema.json").read_text())
    values = yaml.safe_load((chart / "values.yaml").read_text())
    assert schema_paths(schema, schema) - {"global"} == paths(values)


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_every_value_says_what_it_means(chart: Path) -> None:
    lines = (chart / "values.yaml").read_text().splitlines()
    silent = []
    for number, line in enumerate(lines):
        key = re.match(r"^( *)(\w+):", line)
        inside_free = re.match(r"^ +(requests|limits):", line)
        is_group = line.rstrip().endswith(":") and key is not None and key.group(2) not in FREE
        if key and not inside_free and not is_group and not lines[number - 1].strip().startswith("#"):
            silent.append(line)
    assert silent == []


def test_rules_and_dashboards_are_the_files_that_the_tests_read() -> None:
    rules = CHART / "files/millrace.rules.yaml"
    boards = CHART / "files/dashboards"
    assert rules.resolve() == REPOSITORY / "dashboards/rules/millrace.rules.yaml"
    assert boards.resolve() == REPOSITORY / "dashboards/generated"
    assert rules.is_file() and list(boards.glob("*.json"))


def test_the_operator_holds_the_rights_that_it_hands_out() -> None:
    text = (CHART / "templates/_rights.tpl").read_text()
    rule = re.search(r"resources: \[pods\]\n  verbs: \[([^]]*)\]", text)
    assert rule is not None
    assert rule.group(1).split(", ") == PODS


@pytest.mark.parametrize("runs", [False, True])
def test_the_tiny_job_of_helm_test_cleans_up_after_itself(runs: bool) -> None:
    made = manifests("ns", "tiny", runs)
    assert [one["kind"] for one in made] == (["Topic", "Topic"] if runs else []) + ["StreamJob"]
    policies = [one["spec"].get("deletionPolicy") or one["spec"]["checkpoint"]["deletionPolicy"] for one in made]
    assert set(policies) == {"Delete"}
