"""Every panel's query and every rule runs against a real Prometheus that has scraped the platform, and finds data."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import get_args

import pytest

from millrace.local.prometheus import Prometheus
from millrace.metrics import Exporter
from millrace_dashboards import preview
from millrace_dashboards.__main__ import BOARDS, DEMO_RULES, HOME
from millrace_dashboards.boards import Panel
from millrace_dashboards.rules import alerts
from tests.integration.panels.stand_in import StandIn
from tests.integration.panels.waiting import wait_until
from tests.queries import filled_in

pytestmark = pytest.mark.integration

PANELS = [pytest.param(panel, id=f"{board.uid}: {panel.title}") for board in BOARDS for _, panel in board.panels()]
SCRAPED_SECONDS = 90.0
FIRING = {
    ("StreamJobDataLost", "views"),
    ("StreamJobCrashLooping", "views"),
    ("StreamJobCheckpointFailing", "views"),
    ("StreamJobStragglersOverSlo", "views"),
    ("StreamJobClockAhead", "views"),
    ("StreamJobMalformedEvents", "views"),
    ("TopicNotAsDeclared", None),
}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It has scraped driver, observer and operator often enough for every window that the panels use."""
    with ExitStack() as stack:
        parts = [stack.enter_context(StandIn(exporter)).address for exporter in get_args(Exporter)]
        running = stack.enter_context(Prometheus(tmp_path_factory.mktemp("prometheus"), [HOME / DEMO_RULES]))
        running.scrape(parts)
        wait_until(lambda: running.healthy_targets() >= set(parts), SCRAPED_SECONDS, "every endpoint was scraped")
        wait_until(lambda: _fired(running) >= FIRING, SCRAPED_SECONDS, "the alerts fired")
        yield running


@pytest.mark.parametrize("panel", PANELS)
def test_a_panels_queries_find_data(prometheus: Prometheus, panel: Panel) -> None:
    for query in panel.queries:
        samples = prometheus.query(filled_in(query.expr))
        assert samples, f"no data for {query.expr}"
        assert all(sample.value == sample.value for sample in samples), f"not a number: {query.expr}"


def test_prometheus_evaluates_every_rule_without_a_fault(prometheus: Prometheus) -> None:
    health = prometheus.rule_faults()
    assert set(health) == {alert.name for alert in alerts()}
    assert {name: fault for name, fault in health.items() if fault} == {}


def test_what_is_wrong_fires_and_a_resting_job_is_silent(prometheus: Prometheus) -> None:
    """Every counter of the stand-ins rises, failures and losses too; every gauge of the running job is fine."""
    assert _fired(prometheus) == FIRING


def test_the_preview_draws_every_board(prometheus: Prometheus, tmp_path: Path) -> None:
    assert preview.main(["--prometheus", prometheus.address, "--minutes", "1", "--out", str(tmp_path)]) == 0
    pictures = {path.stem: path.read_bytes() for path in tmp_path.glob("*.png")}
    assert set(pictures) == {board.uid for board in BOARDS}
    assert all(picture.startswith(b"\x89PNG") for picture in pictures.values())


def _fired(prometheus: Prometheus) -> set[tuple[str, str | None]]:
    return {(labels["alertname"], labels.get("job")) for labels in prometheus.firing()}
