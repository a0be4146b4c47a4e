"""What became of every alert of a run: when it fired, when it resolved. Asks Alertmanager in the background."""

import contextlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http.client import HTTPException
from types import TracebackType
from typing import Self

from millrace.local.alertmanager import Alertmanager, AlertmanagerError, FiringAlert

PERIOD_SECONDS = 1.0


@dataclass(frozen=True)
class Episode:
    """One alert from when it fired to when it resolved. `resolved` is None while it fires."""

    labels: Mapping[str, str]
    summary: str
    runbook: str
    since: datetime
    resolved: datetime | None = None

    @property
    def name(self) -> str:
        return self.labels.get("alertname", "")

    @property
    def severity(self) -> str:
        return self.labels.get("severity", "")

    @property
    def job(self) -> str:
        """As NAMESPACE/JOB; empty for an alert that is not about a job."""
        parts = (self.labels.get("namespace"), self.labels.get("job"))
        return "/".join(part for part in parts if part)


class AlertWatch:
    """Context manager: asks once a second inside. An Alertmanager that does not answer changes nothing."""

    def __init__(self, alertmanager: Alertmanager) -> None:
        self._alertmanager = alertmanager
        self._episodes: tuple[Episode, ...] = ()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._thread.join()

    def episodes(self) -> tuple[Episode, ...]:
        """All so far, in the order in which they were first seen."""
        return self._episodes

    def _run(self) -> None:
        while not self._closing.wait(PERIOD_SECONDS):
            with contextlib.suppress(OSError, HTTPException, AlertmanagerError):
                self._episodes = follow(self._episodes, self._alertmanager.firing(), datetime.now(UTC))


def follow(before: Sequence[Episode], firing: Iterable[FiringAlert], now: datetime) -> tuple[Episode, ...]:
    """The episodes after one more look. An alert that fires again begins a new one."""
    seen = {frozenset(one.labels.items()): one for one in firing}
    known = [one if one.resolved else _next(one, seen.pop(frozenset(one.labels.items()), None), now) for one in before]
    return (*known, *sorted(map(_first, seen.values()), key=lambda one: one.since))


def fires(episodes: Sequence[Episode], name: str, job: str) -> bool:
    return any(one.name == name and one.job == job and one.resolved is None for one in episodes)


def _next(episode: Episode, alert: FiringAlert | None, now: datetime) -> Episode:
    if alert is None:
        return replace(episode, resolved=now)
    return replace(episode, summary=alert.annotations.get("summary", ""))  # its figures change while it fires


def _first(alert: FiringAlert) -> Episode:
    said = alert.annotations
    return Episode(alert.labels, said.get("summary", ""), said.get("runbook_url", ""), alert.since)
