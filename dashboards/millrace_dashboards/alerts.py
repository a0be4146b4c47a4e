"""What an alert is, and how it becomes a rule that Prometheus reads. What alerts there are stands in other modules."""

from dataclasses import dataclass
from typing import Literal

from millrace.metrics import Metric
from millrace_dashboards.boards import Board, Panel
from millrace_dashboards.promql import Pace

Severity = Literal["critical", "warning", "info"]

JOB = "{{ $labels.namespace }}/{{ $labels.job }}"  # how a job is called in every text


@dataclass(frozen=True)
class Links:
    """Where the pages are. Paths by default, because no host is known here; an installation puts its own before."""

    runbooks: str = "dashboards/runbooks"
    grafana: str = ""

    def runbook(self, alert: str) -> str:
        return f"{self.runbooks}/{alert}.md"

    def panel(self, board: Board, panel: Panel, labels: str) -> str:
        """The panel, with the board's choices set as far as the alert has those labels."""
        choices = "".join(
            f"&var-{choice.label}={{{{ $labels.{choice.label} }}}}"
            for choice in board.variables
            if choice.label in labels.split(", ")
        )
        return f"{self.grafana}/d/{board.uid}?viewPanel={board.number(panel)}{choices}"


@dataclass(frozen=True)
class Alert:
    """One static rule for every job. `labels` tell its alerts apart; `hold_seconds` is how long it must hold."""

    name: str
    severity: Severity
    labels: str
    expr: str
    hold_seconds: int
    summary: str
    description: str
    board: Board
    panel: Panel

    def rule(self, links: Links, pace: Pace) -> dict[str, object]:
        """The rule as Prometheus reads it. An alert's time to hold is divided by the pace, as its windows are."""
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": pace.hold(self.hold_seconds),
            "labels": {"severity": self.severity},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": links.runbook(self.name),
                "dashboard_url": links.panel(self.board, self.panel, self.labels),
            },
        }


def worst(metric: Metric, label: str, labels: str, window: str) -> str:
    """Template text that names the label's value with the largest increase for this alert: a cause, a partition."""
    matchers = ", ".join(f"{name}=%q" for name in labels.split(", "))
    values = " ".join(f"$labels.{name}" for name in labels.split(", "))
    query = f"topk(1, sum by ({label}) (increase({metric.name}{{{matchers}}}[{window}])))"
    return (
        f"{{{{ with printf `{query}` {values} | query }}}}"
        f'{{{{ . | first | label "{label}" }}}}{{{{ else }}}}unknown{{{{ end }}}}'
    )
