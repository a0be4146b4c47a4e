"""The real platform on this machine: a broker, a shop that sells, a driver that reads it, and the lag observer."""

import subprocess
import sys
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from millrace.local.demo import example_files
from millrace.local.feed import Feed
from millrace.local.processes import Child
from millrace.local.prometheus import HOST, free_port
from millrace.local.runs import Run, RunSettings
from millrace.resources.reading import read_files
from millrace.shop import Burst, Mix, Shop

JOB = ("shop", "pageviews-per-minute")
# Five minutes of history let windows close at once; a crowd that comes back late gives stragglers that can be shown.
SHOP = Shop(
    events_per_second=100, history=timedelta(minutes=5), mix=Mix(ahead=0.01), burst=Burst(at_seconds=20, events=300)
)


class PlatformRun:
    """Context manager: everything runs inside, and is gone after."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self.driver = f"{HOST}:{free_port()}"
        self.observer = f"{HOST}:{free_port()}"

    def __enter__(self) -> Self:
        specs = example_files([JOB[1]])
        with ExitStack() as stack:
            settings = RunSettings(self._folder / "state", metrics_port=_port(self.driver))
            run = stack.enter_context(Run(read_files(specs), settings, lambda _: None))
            run.start()
            stack.enter_context(Feed(run.bootstrap, SHOP))
            stack.callback(self._start_observer(run.bootstrap, specs[0]).stop)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start_observer(self, bootstrap: str, spec: Path) -> Child:
        command = [sys.executable, "-m", "millrace_lag", "--bootstrap", bootstrap, "--only-bootstrap"]
        command += ["--jobs", str(spec), "--host", HOST, "--port", str(_port(self.observer)), "--interval", "1s"]
        with (self._folder / "observer.log").open("wb") as log:
            return Child(command, grace_seconds=10, stdout=log, stderr=subprocess.STDOUT)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
