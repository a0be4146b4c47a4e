"""The observer: keeps the list of jobs up to date, has one watch per cluster and Secret, tells what they know."""

import contextlib
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from millrace.errors import UserError
from millrace_lag.exposition import Renderer
from millrace_lag.logins import Logins, from_folders
from millrace_lag.polling import ClusterView, Watch
from millrace_lag.snapshots import snapshot
from millrace_lag.subjects import Door, Subject

log = logging.getLogger(__name__)

Lister = Callable[[], tuple[Subject, ...]]


@dataclass(frozen=True)
class Settings:
    """How often and how patiently it asks."""

    interval_seconds: float = 5.0  # a poll takes well under a second, so this costs the brokers next to nothing
    deadline_seconds: float = 10.0
    list_seconds: float = 10.0  # how soon a new job is watched
    exporter_names: bool = False


class Observer:
    """Context manager: it watches inside."""

    def __init__(self, lister: Lister, settings: Settings | None = None, logins: Logins = from_folders) -> None:
        self._lister, self._logins = lister, logins
        self._settings = settings or Settings()
        self._watches: dict[Door, Watch] = {}
        self._listed_at = 0.0
        self._closing = threading.Event()
        self._polled = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)
        self._renderer = Renderer()
        self._rendered: tuple[object, bytes] = (None, b"")
        self._rendering = threading.Lock()

    def __enter__(self) -> Self:
        self._refresh()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._thread.join()
        for watch in self._watches.values():
            watch.close()

    def views(self) -> tuple[ClusterView, ...]:
        """The last that is known, by cluster."""
        return tuple(watch.view for watch in list(self._watches.values()))

    def wait(self, condition: Callable[[tuple[ClusterView, ...]], bool], seconds: float) -> bool:
        """Wait until the views are so, looking after each poll. Returns whether they came to be so in time."""
        with self._polled:
            return self._polled.wait_for(lambda: condition(self.views()), seconds)

    def metrics(self) -> bytes:
        """The text for Prometheus. Made once for each new view, however often it is asked for."""
        with self._rendering:
            state = (self._listed_at, *map(id, views := self.views()))
            if state != self._rendered[0]:
                samples = snapshot(views, self._listed_at, self._settings.exporter_names)
                self._rendered = ((*state,), self._renderer.render(samples))
            return self._rendered[1]

    def troubles(self) -> list[str]:
        """Why it cannot see, one sentence for each reason; empty when it sees everything."""
        blind = [view for view in self.views() if not view.health.up]
        found = [f"{view.cluster}: {view.health.error or 'has not answered yet'}" for view in blind]
        late = time.time() - self._listed_at > 3 * self._settings.list_seconds
        return found + (["The list of jobs cannot be read."] if late else [])

    def _run(self) -> None:
        while not self._closing.wait(self._settings.list_seconds):
            self._refresh()

    def _refresh(self) -> None:
        try:
            found = self._lister()
        except UserError as error:
            log.warning("the list of jobs cannot be read, the last one stays: %s", error)
            return
        self._listed_at = time.time()
        by_door: dict[Door, list[Subject]] = defaultdict(list)
        for one in found:
            by_door[one.door].append(one)
        for door in self._watches.keys() - by_door.keys():
            self._watches.pop(door).close()
        for door, mine in by_door.items():
            self._watch(door, tuple(mine))

    def _watch(self, door: Door, mine: tuple[Subject, ...]) -> None:
        known = door in self._watches
        if not known:
            times = (self._settings.interval_seconds, self._settings.deadline_seconds)
            self._watches[door] = Watch(door, *times, self._tell, self._logins)
        self._watches[door].watched = mine
        if not known:
            self._watches[door].start()

    def _tell(self, view: ClusterView) -> None:
        if not view.health.up:
            log.warning("%s cannot be asked, its figures are stale: %s", view.cluster, view.health.error)
        with contextlib.suppress(RuntimeError), self._polled:
            self._polled.notify_all()
