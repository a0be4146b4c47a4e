"""What watches the jobs of a demo: the lag observer, a real Prometheus with the fast rules, a real Alertmanager.

Starts and stops them and tells Prometheus whom to scrape. What the alerts mean is the rules' matter.
"""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from millrace.local import alertmanager, prometheus
from millrace.local.alertmanager import Alertmanager
from millrace.local.alerts import AlertWatch, Episode
from millrace.local.drivers import Driver
from millrace.local.processes import Child
from millrace.local.prometheus import HOST, Prometheus, free_port
from millrace.local.tables import Row

RULES = Path(__file__).parents[3] / "dashboards" / "rules" / "demo.rules.yaml"
SCRAPE_SECONDS = 2  # often enough for windows of ten seconds, seldom enough for two cores that run Spark
OBSERVER_SECONDS = 10.0  # grace of the observer, which keeps nothing


def lacking() -> str | None:
    """Why alerts cannot be shown here, as a sentence that says what to do; None when they can."""
    missing = [name for name in (prometheus.PROGRAM, alertmanager.PROGRAM) if shutil.which(name) is None]
    if missing:
        what = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        return f"No alerts are shown: {what}; 'platform/tools/ensure {' '.join(missing)}' installs it as root."
    if not RULES.is_file():
        return "No alerts are shown, because their rules are not installed: run the demo from a checkout."
    return None


class Monitoring:
    """Context manager: everything that watches is there inside, and gone after."""

    def __init__(self, folder: Path, bootstrap: str, drivers: Sequence[Driver]) -> None:
        self._folder = folder
        self._bootstrap = bootstrap
        self._drivers = drivers
        self._stack = contextlib.ExitStack()
        self._observer: str | None = None
        self._targets: set[str] = set()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            manager = stack.enter_context(Alertmanager(self._folder / "alertmanager"))
            scraper = Prometheus(self._folder / "prometheus", [RULES], SCRAPE_SECONDS, manager.address)
            self._prometheus = stack.enter_context(scraper)
            self._watch = stack.enter_context(AlertWatch(manager))
            self.addresses = f"Prometheus http://{scraper.address}, Alertmanager http://{manager.address}"
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def episodes(self) -> tuple[Episode, ...]:
        return self._watch.episodes()

    def look(self, rows: Sequence[Row], caught_up: bool) -> None:
        """Scrape every job that serves its metrics by now, and the observer once all jobs have caught up.

        Sooner it would be right to say that they do not move: they are still starting.
        """
        if self._observer is None and caught_up:
            self._observer = self._start_observer()
        ports = {row.status.metrics_port for row in rows if row.status.metrics_port}
        targets = {f"{HOST}:{port}" for port in ports} | ({self._observer} if self._observer else set())
        if targets != self._targets:
            self._targets = targets
            self._prometheus.scrape(targets)

    def _start_observer(self) -> str:
        """Start it and return its address."""
        port = free_port()
        command = [sys.executable, "-P", "-m", "millrace_lag", "--bootstrap", self._bootstrap, "--only-bootstrap"]
        command += ["--jobs", str(self._specs()), "--host", HOST, "--port", str(port), "--interval", "1s"]
        with (self._folder / "observer.log").open("wb") as log:
            child = Child(command, grace_seconds=OBSERVER_SECONDS, stdout=log, stderr=subprocess.STDOUT)
        self._stack.callback(child.stop)
        return f"{HOST}:{port}"

    def _specs(self) -> Path:
        """A folder with the spec of every job, for the observer to read."""
        folder = self._folder / "jobs"
        folder.mkdir(exist_ok=True)
        for number, driver in enumerate(self._drivers):
            shutil.copy(driver.paths.spec, folder / f"{number}.yaml")
        return folder
