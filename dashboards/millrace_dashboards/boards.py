"""What a dashboard is made of, before it is anybody's JSON: boards, rows, panels, queries.

Alerts point at panels, tests run their queries, the preview draws them, `grafana.py` turns them into Grafana's model.
Plain values only; no library of Grafana is imported here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from millrace.metrics import Metric
from millrace_dashboards.promql import select

Kind = Literal["lines", "stack", "number", "bars", "table", "states"]
Size = Literal["small", "third", "half", "full"]

RATE_WINDOW = "$__rate_interval"  # Grafana fills these in; whoever runs a query elsewhere has to as well
RANGE_WINDOW = "$__range"


@dataclass(frozen=True)
class Query:
    """One expression, how its series are called, and whether only its value now counts."""

    expr: str
    legend: str = ""
    instant: bool = False


@dataclass(frozen=True)
class Panel:
    """One question with its answer. `unit` is one of Grafana's."""

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: Kind = "lines"
    size: Size = "third"


@dataclass(frozen=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A choice at the top of a board: the values of `label` in `metric`."""

    label: str
    metric: Metric
    within: str = ""
    several: bool = True


@dataclass(frozen=True)
class Board:
    """One dashboard. Its uid is part of every link to it and never changes."""

    uid: str
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    def panels(self) -> Iterator[tuple[int, Panel]]:
        """Every panel with its number, by which a link finds it. The numbers count rows too, as Grafana does."""
        number = 0
        for row in self.rows:
            number += 1
            for panel in row.panels:
                number += 1
                yield number, panel

    def number(self, panel: Panel) -> int:
        return next(number for number, candidate in self.panels() if candidate == panel)


def chosen(metric: Metric, suffix: str = "", **matchers: str) -> str:
    """A selector for what is chosen at the top of the board, as far as the metric has those labels."""
    choices: dict[str, str] = {label: f"~${label}" for label in ("namespace", "job") if label in metric.labels}
    return select(metric, suffix, **(choices | matchers))
