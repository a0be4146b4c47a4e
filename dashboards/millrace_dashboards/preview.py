"""Draws every board from a running Prometheus into a picture, for the docs and for people without Grafana.

A rough likeness: the same panels in the same places with the same queries, not the same looks.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import matplotlib as mpl

mpl.use("Agg")  # before pyplot is loaded: there may be no screen
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from millrace.local.prometheus import get
from millrace_dashboards.__main__ import BOARDS
from millrace_dashboards.boards import Board, Panel, Query
from millrace_dashboards.grafana import SPANS

COLUMNS = 24
INCHES_PER_LINE = 0.42
POINTS = 120
LEGENDS = 6
HEAD = 2  # lines for the board's title
SIDE, GAP, ABOVE, BELOW = 0.8, 0.3, 0.8, 0.7  # free space around what is drawn, in columns and lines


@dataclass(frozen=True)
class Line:
    """A named series: its times as minutes before now, and its values."""

    name: str
    minutes: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Source:
    """A Prometheus, how far back to look, and what is chosen at the top of the boards."""

    address: str
    seconds: int
    choices: Mapping[str, str]

    def lines(self, query: Query, now: float) -> list[Line]:
        step = max(self.seconds // POINTS, 1)
        expr = self._filled_in(query.expr, step)
        asked = {"query": expr, "start": str(now - self.seconds), "end": str(now), "step": str(step)}
        status, body = get(self.address, f"/api/v1/query_range?{urlencode(asked)}")
        answer: dict[str, Any] = json.loads(body)
        if status != 200:
            raise ValueError(f"{self.address} refuses {expr}: {answer.get('error')}")
        return [_line(query, one["metric"], one["values"], now) for one in answer["data"]["result"]]

    def _filled_in(self, expr: str, step: int) -> str:
        windows = {"__rate_interval": f"{max(4 * step, 60)}s", "__range": f"{self.seconds}s"}
        return re.sub(r"\$(\w+)", lambda found: windows.get(found[1]) or self.choices.get(found[1]) or ".+", expr)


def _line(query: Query, labels: Mapping[str, str], points: Sequence[tuple[float, str]], now: float) -> Line:
    name = re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), query.legend) or str(dict(labels))
    minutes, values = zip(*((at - now, float(value)) for at, value in points), strict=True)
    return Line(name, tuple(at / 60 for at in minutes), values)


def draw(board: Board, source: Source, path: Path, now: float) -> None:
    """One picture of one board."""
    places, height = layout(board)
    figure = plt.figure(figsize=(COLUMNS * 0.62, height * INCHES_PER_LINE))
    figure.suptitle(board.title, x=0.01, y=1 - 0.3 / height, ha="left", va="top", fontsize=13)
    for panel, (x, y, width, lines) in places:
        left, bottom = (x + SIDE) / COLUMNS, 1 - (y + lines - BELOW) / height
        box = (left, bottom, (width - SIDE - GAP) / COLUMNS, (lines - ABOVE - BELOW) / height)
        found = [line for query in panel.queries for line in source.lines(query, now)]
        _draw_panel(figure.add_axes(box), panel, found)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def layout(board: Board) -> tuple[list[tuple[Panel, tuple[int, int, int, int]]], int]:
    """Where each panel goes on a grid of 24 columns, as Grafana places it, and how many lines there are."""
    places, x, y, tallest = [], 0, HEAD, 0
    for panel in (panel for row in board.rows for panel in row.panels):
        width, height = SPANS[panel.size]
        if x + width > COLUMNS or any(panel is row.panels[0] for row in board.rows):
            x, y, tallest = 0, y + tallest, 0
        places.append((panel, (x, y, width, height)))
        x, tallest = x + width, max(tallest, height)
    return places, y + tallest


def _draw_panel(axes: Axes, panel: Panel, lines: list[Line]) -> None:
    axes.set_title(f"{panel.title} ({panel.unit})", fontsize=8, loc="left")
    axes.tick_params(labelsize=6)
    if panel.kind in ("number", "table", "bars"):
        return _draw_now(axes, panel, lines)
    if panel.kind == "stack" and lines:
        longest = max(lines, key=lambda line: len(line.minutes)).minutes
        rows = [dict(zip(line.minutes, line.values, strict=True)) for line in lines]
        values = [[row.get(minute, 0.0) for minute in longest] for row in rows]
        axes.stackplot(longest, values, labels=[line.name for line in lines], alpha=0.7)
    else:
        for line in lines:
            axes.plot(line.minutes, line.values, label=line.name, linewidth=1)
    if lines:
        axes.set_ylim(bottom=0)
        axes.legend(*(part[:LEGENDS] for part in axes.get_legend_handles_labels()), fontsize=5, loc="upper left")
    return None


def _draw_now(axes: Axes, panel: Panel, lines: list[Line]) -> None:
    """What counts is the last value: as a number, as a list of names, or as bars."""
    newest = [(line.name, line.values[-1]) for line in lines if line.minutes[-1] > -1]
    if panel.kind == "bars":
        newest.sort(key=lambda one: float(one[0].split()[0].replace("+Inf", "inf")))
        axes.barh([name for name, _ in newest], [value for _, value in newest])
        return
    axes.set_axis_off()
    text = "\n".join(f"{name}: {value:.4g}" for name, value in newest[: 3 * LEGENDS]) or "nothing"
    axes.text(0, 0.95, text, fontsize=7 if len(newest) > 3 else 11, va="top")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="millrace_dashboards.preview", description=__doc__)
    parser.add_argument("--prometheus", required=True, metavar="HOST:PORT", help="a Prometheus that scrapes Millrace")
    parser.add_argument("--minutes", type=int, default=15, help="how far back to look (default: 15)")
    parser.add_argument("--namespace", default="", help="of the job to show (default: all)")
    parser.add_argument("--job", default="", help="the job to show (default: all)")
    parser.add_argument("--out", type=Path, default=Path("build/dashboards"), help="folder for the pictures")
    chosen = parser.parse_args(arguments)
    source = Source(chosen.prometheus, chosen.minutes * 60, {"namespace": chosen.namespace, "job": chosen.job})
    chosen.out.mkdir(parents=True, exist_ok=True)
    now = time.time()
    for board in BOARDS:
        draw(board, source, chosen.out / f"{board.uid}.png", now)
        print(chosen.out / f"{board.uid}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
