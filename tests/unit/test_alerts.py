"""Alert rules, their runbooks and their promtool tests belong together, and say only what can be true."""

import re
from pathlib import Path

import pytest

from millrace import metrics as m
from millrace_dashboards.__main__ import HOME, STORIES
from millrace_dashboards.alerts import Alert, Links
from millrace_dashboards.promql import Pace, duration, select
from millrace_dashboards.rules import alerts, rule_file
from millrace_dashboards.stories import all_quiet, series
from tests.queries import problems

pytestmark = pytest.mark.unit

ALERTS = {alert.name: alert for alert in alerts()}
RUNBOOKS = HOME / "runbooks"
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]
WANTED = {
    "StreamJobFallingBehind",
    "StreamJobLagOverSlo",
    "StreamJobDataLossAhead",
    "StreamJobDataLost",
    "StreamJobNotProgressing",
    "StreamJobCrashLooping",
    "StreamJobStragglersOverSlo",
    "StreamJobStragglersSpiking",
    "StreamJobClockAhead",
    "StreamJobMalformedEvents",
    "StreamJobSinkUnavailable",
    "StreamJobCheckpointFailing",
    "TopicNotAsDeclared",
    "StreamOperatorNotReconciling",
    "StreamObserverBlind",
}


def _names(folder: Path, suffix: str) -> set[str]:
    return {path.name.removesuffix(suffix) for path in folder.glob(f"*{suffix}")}


def test_rule_runbook_and_promtool_test_are_one_to_one() -> None:
    assert set(ALERTS) == WANTED
    assert _names(RUNBOOKS, ".md") == WANTED
    assert _names(HOME / "rules" / "tests", ".yaml") == WANTED
    assert {story.alert for story in STORIES} == WANTED


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS.keys())
def test_a_rule_uses_only_metrics_and_labels_that_exist(alert: Alert) -> None:
    assert problems(alert.expr) == []


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS.keys())
def test_each_alert_is_shown_to_fire_to_resolve_and_to_stay_quiet(alert: Alert) -> None:
    stories = [story for story in STORIES if story.alert == alert.name]
    assert all(story.fires < story.resolved for story in stories)
    assert any(story.before is not None and story.before < story.fires for story in stories)
    assert any(story.quiet for story in stories)


@pytest.mark.parametrize("alert", [a for n, a in ALERTS.items() if n.startswith("StreamJob")], ids=lambda a: a.name)
def test_an_alert_of_a_job_is_silent_while_it_is_suspended_or_upgrading(alert: Alert) -> None:
    assert f"{m.JOB_SUSPENDED.name} == 1 or {m.JOB_UPGRADING.name} == 1" in alert.expr
    story = next(story for story in STORIES if story.alert == alert.name)
    assert {"the job is suspended", "the job is upgrading"} <= {quiet.why for quiet in all_quiet(story)}


@pytest.mark.parametrize("name", sorted(WANTED))
def test_a_runbook_fits_one_screen_and_has_its_sections_in_order(name: str) -> None:
    lines = (RUNBOOKS / f"{name}.md").read_text().splitlines()
    assert lines[0] == f"# {name}"
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == SECTIONS
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 140


def test_links_are_paths_until_an_installation_puts_its_address_before_them() -> None:
    assert not re.search(r"https?://", rule_file())
    placed = rule_file(Links(runbooks="https://docs.example/runbooks", grafana="https://grafana.example"))
    assert "runbook_url: https://docs.example/runbooks/StreamJobDataLost.md" in placed
    assert "dashboard_url: https://grafana.example/d/millrace-job?viewPanel=" in placed


def test_a_label_or_series_that_a_metric_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="millrace_job_lag_seconds has no label sink"):
        select(m.JOB_LAG_SECONDS, sink="x")
    with pytest.raises(ValueError, match="no series millrace_job_lag_seconds_bucket"):
        select(m.JOB_LAG_SECONDS, "_bucket")
    with pytest.raises(ValueError, match="millrace_job_sink_up has the labels namespace, job, sink"):
        series(m.JOB_SINK_UP, "1x5")


def test_a_faster_pace_divides_durations_but_keeps_windows_that_hold_several_scrapes() -> None:
    assert [Pace(60).span(seconds) for seconds in (86400, 3600, 600, 60, 0)] == ["24m", "1m", "10s", "10s", "0s"]
    assert [duration(seconds) for seconds in (90, 600, 7200, 86400)] == ["90s", "10m", "2h", "1d"]
    assert "[1d]" not in re.sub(r"max_over_time\(\w+\[1d\]\)", "", rule_file(pace=Pace(60)))
