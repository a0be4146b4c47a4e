"""Every panel's query against a real Prometheus that has scraped a real driver and the real lag observer.

Only the operator, which needs a cluster, is stood in for.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from millrace import metrics as m
from millrace.local.prometheus import Prometheus
from millrace_dashboards.__main__ import BOARDS, DEMO_RULES, HOME
from millrace_dashboards.boards import Panel
from millrace_dashboards.promql import select
from millrace_dashboards.rules import alerts
from tests.integration.panels.platform_run import JOB, PlatformRun
from tests.integration.panels.stand_in import StandIn
from tests.integration.panels.waiting import wait_until
from tests.queries import filled_in

pytestmark = pytest.mark.integration

PANELS = [pytest.param(panel, id=f"{board.uid}: {panel.title}") for board in BOARDS for _, panel in board.panels()]
START_SECONDS = 400.0  # a broker, a JVM and the first batches, on two cores that others use too


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It has seen the job read its backlog, judge the crowd that came late, and write results."""
    with ExitStack() as stack:
        operator = stack.enter_context(StandIn("operator", jobs=(JOB,), well=True))
        running = stack.enter_context(Prometheus(tmp_path_factory.mktemp("prometheus"), [HOME / DEMO_RULES], 2))
        platform = stack.enter_context(PlatformRun(tmp_path_factory.mktemp("platform")))
        parts = {operator.address, platform.driver, platform.observer}
        running.scrape(parts)
        wait_until(lambda: running.healthy_targets() >= parts, START_SECONDS, "every endpoint was scraped")
        for what in (
            select(m.JOB_EVENTS_LATE, outcome="dropped"),
            select(m.JOB_SINK_RECORDS),
            select(m.JOB_EVENTS_FUTURE),
        ):
            some = f"sum(increase({what}[5m])) > 0"
            wait_until(lambda some=some: bool(running.query(some)), START_SECONDS, some)  # type: ignore[misc]
        yield running


@pytest.mark.parametrize("panel", PANELS)
def test_a_panels_queries_find_data_of_the_real_platform(prometheus: Prometheus, panel: Panel) -> None:
    found = {query: prometheus.query(filled_in(query.expr, "1m", "5m")) for query in panel.queries}
    for query, samples in found.items():
        chooses = query.expr.endswith("== 1") or "ALERTS" in query.expr  # on a good day there is nothing to choose
        assert samples or chooses, f"no data for {query.expr}"
        assert all(sample.value == sample.value for sample in samples), f"not a number: {query.expr}"


def test_prometheus_evaluates_every_rule_on_real_figures_without_a_fault(prometheus: Prometheus) -> None:
    assert prometheus.rule_faults() == {alert.name: "" for alert in alerts()}


def test_the_shops_wrong_clocks_raise_the_alert_for_the_right_topic(prometheus: Prometheus) -> None:
    def ahead() -> list[dict[str, str]]:
        return [dict(one) for one in prometheus.firing() if one["alertname"] == "StreamJobClockAhead"]

    wait_until(lambda: bool(ahead()), START_SECONDS, "the alert on clocks fired")
    assert [(one["namespace"], one["job"], one["topic"]) for one in ahead()] == [(*JOB, "pageviews")]
