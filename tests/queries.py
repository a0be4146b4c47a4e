"""What can be known about a PromQL expression without a Prometheus: whether its metrics and labels exist."""

import re

from millrace import metrics as m
from millrace_dashboards.promql import SUFFIXES

SERIES = {
    metric.name + suffix: metric
    for metric in m.ALL
    for suffix in (SUFFIXES[1:] if metric.kind == "histogram" else [""])
}
OWN_LABELS = {label for metric in m.ALL for label in metric.labels} | {"le"}
ALERTS_LABELS = {"alertname", "alertstate", "severity"}  # of Prometheus's own series ALERTS


def problems(expression: str) -> list[str]:
    """Every metric and label in the expression that does not exist; a metric must have the labels it is asked for."""
    found = [f"no metric {name}" for name in re.findall(r"\bmillrace_\w+", expression) if name not in SERIES]
    for name, inside in re.findall(r"\b(millrace_\w+)\{([^}]*)\}", expression):
        known = {*SERIES[name].labels, "le"} if name in SERIES else set()
        found += [
            f"{name} has no label {label}"
            for label in re.findall(r"(\w+)\s*[=!]~?=?", _bare(inside))
            if label not in known
        ]
    for inside in re.findall(r"\b(?:by|on|group_left|ignoring)\s*\(([\w, ]*)\)", expression):
        labels = {label for label in re.split(r",\s*", inside) if label}
        found += [f"no metric has the label {label}" for label in sorted(labels - OWN_LABELS - ALERTS_LABELS)]
    return found


def _bare(inside: str) -> str:
    """The matchers without their values, which may hold anything."""
    return re.sub(r'"[^"]*"', '""', inside)


def filled_in(expression: str, rate_window: str = "10s", range_window: str = "30s") -> str:
    """The expression with what Grafana would put in for its variables: everything chosen, short windows."""
    known = {"__rate_interval": rate_window, "__range": range_window}
    return re.sub(r"\$(\w+)", lambda found: known.get(found[1], ".+"), expression)
