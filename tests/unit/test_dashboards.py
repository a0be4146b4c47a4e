"""Dashboards are made from code, are up to date, ask for what exists, and lead from alert to panel to runbook."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from millrace import metrics as m
from millrace_dashboards.__main__ import BOARDS, HOME, drift, files, main
from millrace_dashboards.alerts import Alert, Links
from millrace_dashboards.boards import Board, Panel
from millrace_dashboards.rules import alerts
from tests.queries import SERIES, problems

pytestmark = pytest.mark.unit

PANELS = [(board, panel) for board in BOARDS for _, panel in board.panels()]


def _dashboard(uid: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((HOME / "generated" / f"{uid}.json").read_text())
    return loaded


def test_generated_files_are_up_to_date() -> None:
    assert drift(HOME, files(Links())) == []


def test_a_file_that_was_edited_by_hand_or_left_over_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--out", str(tmp_path)]) == 0
    assert main(["--out", str(tmp_path), "--check"]) == 0
    (tmp_path / "generated" / "millrace-job.json").write_text("{}")
    (tmp_path / "rules" / "tests" / "Old.yaml").write_text("")
    assert main(["--out", str(tmp_path), "--check"]) == 1
    assert "generated/millrace-job.json, rules/tests/Old.yaml" in capsys.readouterr().out


@pytest.mark.parametrize(("board", "panel"), PANELS, ids=lambda one: getattr(one, "title", ""))
def test_a_panel_asks_only_for_metrics_and_labels_that_exist(board: Board, panel: Panel) -> None:
    for query in panel.queries:
        assert problems(query.expr) == [], f"{board.title}: {panel.title}"
        shown = set(re.findall(r"{{(\w+)}}", query.legend))
        assert all(label in query.expr for label in shown), f"{panel.title} names series by labels that are summed away"


def test_every_metric_is_on_a_board_or_in_a_rule() -> None:
    asked = " ".join(
        [query.expr for _, panel in PANELS for query in panel.queries] + [alert.expr for alert in alerts()]
    )
    used = {SERIES[name] for name in re.findall(r"\bmillrace_\w+", asked)}
    assert {metric.name for metric in m.ALL if metric not in used} == set()


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_an_alert_leads_to_a_panel_that_leads_to_its_runbook(alert: Alert) -> None:
    url = Links().panel(alert.board, alert.panel, alert.labels)
    found = re.fullmatch(r"/d/([\w-]+)\?viewPanel=(\d+)(.*)", url)
    assert found
    panels = {panel["id"]: panel for panel in _dashboard(found[1])["panels"]}
    linked = panels[int(found[2])]
    assert linked["title"] == alert.panel.title
    assert f"${{runbooks}}/{alert.name}.md" in [link["url"] for link in linked["links"]]
    variables = {variable["name"] for variable in _dashboard(found[1])["templating"]["list"]}
    assert set(re.findall(r"var-(\w+)=", found[3])) <= variables


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_a_board_has_its_variables_its_links_and_panels_that_do_not_overlap(board: Board) -> None:
    made = _dashboard(board.uid)
    names = [variable["name"] for variable in made["templating"]["list"]]
    assert names == ["datasource", *(variable.label for variable in board.variables), "runbooks"]
    assert {link["url"] for link in made["links"]} == {f"/d/{other.uid}" for other in BOARDS if other != board}
    cells = [cell for panel in made["panels"] for cell in _cells(panel["gridPos"])]
    assert len(cells) == len(set(cells))
    ids = [panel["id"] for panel in made["panels"]]
    assert len(ids) == len(set(ids))


def _cells(place: dict[str, int]) -> list[tuple[int, int]]:
    x, y = place.get("x", 0), place.get("y", 0)
    assert x + place["w"] <= 24
    return [(column, line) for column in range(x, x + place["w"]) for line in range(y, y + place["h"])]
