"""What a promtool test of an alert is made of: a course of events in which it fires and resolves, and quiet ones.

Values follow promtool's notation, one per minute. What an alert must say is spelt out by each story, so that a
template that renders wrongly fails the test. Quiet courses for every job's alert (suspended, upgrading) are added.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from millrace import metrics as m
from millrace.metrics import Metric
from millrace_dashboards.alerts import Alert, Links
from millrace_dashboards.promql import SUFFIXES
from millrace_dashboards.rules import to_yaml

JOB = {"namespace": "shop", "job": "views"}
HEADER = "# promtool test of one alert, made by `make dashboards` from dashboards/millrace_dashboards. Do not edit.\n"
LONG = 240  # minutes; longer than any story


@dataclass(frozen=True)
class Series:
    """One input series. The values are promtool's, a minute apart."""

    metric: Metric
    labels: tuple[tuple[str, str], ...]
    values: str
    suffix: str = ""

    def as_input(self) -> dict[str, str]:
        inside = ", ".join(f'{label}="{value}"' for label, value in self.labels)
        return {"series": f"{self.metric.name}{self.suffix}{{{inside}}}", "values": self.values}


def series(metric: Metric, values: str, suffix: str = "", **labels: str) -> Series:
    """A series of the metric; a job's labels are put in where it has them."""
    everything = {label: value for label, value in JOB.items() if label in metric.labels} | labels
    if set(everything) != set(metric.labels) or suffix not in SUFFIXES:
        raise ValueError(f"{metric.name}{suffix} has the labels {', '.join(metric.labels)}")
    return Series(metric, tuple(everything.items()), values, suffix)


OBSERVED = series(m.JOB_OBSERVED, f"0+60x{LONG}")
STALE = series(m.JOB_OBSERVED, f"0x{LONG}")


@dataclass(frozen=True)
class Quiet:
    """A course of events in which the alert must not fire at the given minute."""

    why: str
    series: tuple[Series, ...]
    minute: int


@dataclass(frozen=True)
class Story:
    """The alert fires at one minute, in these words, and is gone at another; at minute `before` it still waits."""

    alert: str
    series: tuple[Series, ...]
    fires: int
    resolved: int
    labels: dict[str, str]
    summary: str
    description: str
    before: int | None = None
    quiet: tuple[Quiet, ...] = ()


def all_quiet(story: Story) -> tuple[Quiet, ...]:
    """The story's own quiet courses, and those that hold for every alert of a job."""
    general: list[Quiet] = []
    if "job" in story.labels:
        for why, metric in (("the job is suspended", m.JOB_SUSPENDED), ("the job is upgrading", m.JOB_UPGRADING)):
            general.append(Quiet(why, (*story.series, series(metric, f"1x{LONG}")), story.fires))
    if OBSERVED in story.series:
        stale = tuple(STALE if one == OBSERVED else one for one in story.series)
        general.append(Quiet("the observer's figures are stale", stale, story.fires))
    return (*story.quiet, *general)


def test_file(stories: Iterable[Story], alert: Alert, rules: str) -> str:
    """The promtool test as YAML. `rules` is the path of the rule file, seen from the test."""
    tests = [test for story in stories for test in _tests(story, alert)]
    return HEADER + to_yaml({"rule_files": [rules], "evaluation_interval": "1m", "tests": tests})


def _tests(story: Story, alert: Alert) -> list[dict[str, object]]:
    fired: list[object] = [_fired(story, alert)]
    return [
        _test("fires", story.series, _moments(story, alert), alert),
        _test("resolves", story.series, [(story.fires, fired), (story.resolved, [])], alert),
        *(_test(f"stays quiet: {one.why}", one.series, [(one.minute, [])], alert) for one in all_quiet(story)),
    ]


def _moments(story: Story, alert: Alert) -> list[tuple[int, list[object]]]:
    waiting: list[tuple[int, list[object]]] = [] if story.before is None else [(story.before, [])]
    return [*waiting, (story.fires, [_fired(story, alert)])]


def _fired(story: Story, alert: Alert) -> object:
    links = Links()
    url = links.panel(alert.board, alert.panel, alert.labels)
    for label, value in story.labels.items():
        url = url.replace(f"{{{{ $labels.{label} }}}}", value)
    return {
        "exp_labels": story.labels | {"severity": alert.severity},
        "exp_annotations": {
            "summary": story.summary,
            "description": story.description,
            "runbook_url": links.runbook(alert.name),
            "dashboard_url": url,
        },
    }


def _test(
    name: str, inputs: tuple[Series, ...], moments: list[tuple[int, list[object]]], alert: Alert
) -> dict[str, object]:
    return {
        "name": name,
        "interval": "1m",
        "input_series": [one.as_input() for one in inputs],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": alert.name, "exp_alerts": expected} for minute, expected in moments
        ],
    }


def instead(inputs: tuple[Series, ...], metric: Metric, values: str) -> tuple[Series, ...]:
    """The same course of events, but for one metric."""
    return tuple(replace(one, values=values) if one.metric == metric else one for one in inputs)
