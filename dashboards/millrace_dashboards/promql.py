"""The few forms of PromQL that rules and panels are put together from, with metrics and labels checked.

Text in, text out: nothing here asks a Prometheus. A label that a metric does not have is a mistake of ours, found when
the files are generated and not when an alert stays silent.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from millrace import metrics as m
from millrace.metrics import Metric

PER_JOB = "namespace, job"
PER_TOPIC = "namespace, job, topic"
PER_SINK = "namespace, job, sink"
SUFFIXES = ("", "_bucket", "_sum", "_count")
LONGEST_UNIT = ((86400, "d"), (3600, "h"), (60, "m"))
STALE_SECONDS = 120  # figures of the observer that are older say nothing; it polls every few seconds


@dataclass(frozen=True)
class Pace:
    """How much faster than usual time runs: a demonstration has the same rules, with every duration divided."""

    faster: int = 1

    def span(self, seconds: int) -> str:
        """A duration as Prometheus writes it; never below 10 s, so that a window still holds several scrapes."""
        return duration(self.seconds(seconds))

    def seconds(self, seconds: int) -> int:
        return max(seconds // self.faster, min(seconds, 10))

    def hold(self, seconds: int) -> str:
        """How long an alert must hold, as Prometheus writes it. One evaluation is enough when time runs fast."""
        return duration(max(seconds // self.faster, min(seconds, 2)))


def duration(seconds: int) -> str:
    """The shortest exact spelling: 90 is 90s, 600 is 10m."""
    for size, unit in LONGEST_UNIT:
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def select(metric: Metric, suffix: str = "", **matchers: str) -> str:
    """A selector. A value that starts with ~ is a regular expression, with ! a value to leave out."""
    if suffix not in SUFFIXES or bool(suffix) != (metric.kind == "histogram"):
        raise ValueError(f"{metric.name} is a {metric.kind}; it has no series {metric.name}{suffix}")
    known = (*metric.labels, "le") if suffix == "_bucket" else metric.labels
    if unknown := set(matchers) - set(known):
        raise ValueError(f"{metric.name} has no label {', '.join(sorted(unknown))}")
    inside = ", ".join(_matcher(label, value) for label, value in matchers.items())
    return f"{metric.name}{suffix}" + (f"{{{inside}}}" if inside else "")


def _matcher(label: str, value: str) -> str:
    operator = {"~": "=~", "!": "!="}.get(value[:1], "=")
    return f'{label}{operator}"{value if operator == "=" else value[1:]}"'


def agg(function: str, labels: str, inner: str) -> str:
    """An aggregation. Every rule uses one, because a scrape adds labels of its own that must not split an alert."""
    return f"{function} by ({labels}) ({inner})" if labels else f"{function}({inner})"


def increase(selector: str, window: str) -> str:
    return f"increase({selector}[{window}])"


def rate(selector: str, window: str, ago: str = "") -> str:
    return f"rate({selector}[{window}]{f' offset {ago}' if ago else ''})"


def any_of(values: Iterable[str]) -> str:
    """A matcher value for one of several."""
    return "~" + "|".join(values)


def awake(expression: str) -> str:
    """The expression for jobs that are meant to run: neither suspended nor between two versions."""
    resting = f"{select(m.JOB_SUSPENDED)} == 1 or {select(m.JOB_UPGRADING)} == 1"
    return f"{expression}\nunless on ({PER_JOB}) ({resting})"


def seen(expression: str) -> str:
    """The expression for jobs whose figures are fresh. Stale ones are the blind observer's alert, not the job's."""
    fresh = f"time() - {agg('max', PER_JOB, select(m.JOB_OBSERVED))} < {STALE_SECONDS}"
    return f"{expression}\nand on ({PER_JOB}) ({fresh})"
