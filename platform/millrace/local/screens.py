"""Where a run is shown: a live table on a terminal, plain lines elsewhere. Draws what `tables` made, nothing else."""

import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live

from millrace.local import alert_tables, tables
from millrace.local.alerts import Episode
from millrace.local.tables import Row

PLAIN_WIDTH = 140  # a pipe or a file has no width of its own
PLAIN_SECONDS = 5.0


class Screen(Protocol):
    """Context manager that shows a run."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, rows: Sequence[Row], headline: str, alerts: Sequence[Episode] | None = None) -> None:
        """The run as it is now. `alerts`: all so far, or None where nobody watches for them."""

    def say(self, text: str) -> None:
        """A line that stays."""


def make_console() -> Console:
    """The console for everything that is not an error."""
    terminal = sys.stdout.isatty()
    return Console(highlight=False, width=None if terminal else PLAIN_WIDTH)


def make_screen(console: Console) -> Screen:
    return LiveScreen(console) if console.is_terminal else PlainScreen(console)


class LiveScreen:
    """Draws the table over and over in place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, rows: Sequence[Row], headline: str, alerts: Sequence[Episode] | None = None) -> None:
        panels = () if alerts is None else (alert_tables.panel(alerts),)
        self._live.update(Group(tables.live(rows, headline), *panels), refresh=True)

    def say(self, text: str) -> None:
        self._live.console.print(text, markup=False)


class PlainScreen:
    """Prints a job's line when its state changes, and every few seconds while its figures do."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: dict[str, Row] = {}
        self._alerts: tuple[Episode, ...] = ()
        self._next = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to put back."""

    def show(self, rows: Sequence[Row], headline: str, alerts: Sequence[Episode] | None = None) -> None:
        for text in _alert_news(self._alerts, alerts or ()):
            self.say(text)
        self._alerts = tuple(alerts or ())
        due = time.monotonic() >= self._next
        for row in rows:
            if _is_news(self._shown.get(row.name), row, due):
                self._print(row)
        if due:
            self._next = time.monotonic() + PLAIN_SECONDS

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def _print(self, row: Row) -> None:
        self._shown[row.name] = row
        self.say(f"{datetime.now():%H:%M:%S} {tables.line(row)}{f' ({row.trouble})' if row.trouble else ''}")


def _alert_news(before: Sequence[Episode], now: Sequence[Episode]) -> Iterator[str]:
    """A line for each alert that has come, and for each that has gone. Episodes keep their place, so they pair up."""
    for number, one in enumerate(now):
        if number >= len(before):
            yield alert_tables.started(one)
        if one.resolved and (number >= len(before) or before[number].resolved is None):
            yield alert_tables.ended(one)


def _is_news(before: Row | None, now: Row, due: bool) -> bool:
    if before is None or (before.state, before.trouble) != (now.state, now.trouble):
        return True
    return due and before != now
