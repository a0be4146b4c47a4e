"""The command line as a process of its own: what it printed, and which processes descend from it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

END_SECONDS = 400.0  # a Spark driver starts in 10 s on an idle machine, and in minutes on a crowded one

Process = tuple[int, str]
"""A pid with its start time: the same number given to another process later is not the same process."""


class Command:
    """`millrace …`, running. Its output goes to a file, so that nothing ever waits for a reader."""

    def __init__(self, arguments: list[str], folder: Path, **environment: str) -> None:
        self._output = folder / "output.txt"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "millrace", *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(folder), **environment},
                cwd=folder,
            )

    def output(self) -> str:
        return self._output.read_text()

    def descendants(self) -> set[Process]:
        return set(_descendants(self._process.pid))

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait_for_text(self, text: str) -> None:
        def there() -> bool:
            assert text in self.output() or self._process.poll() is None, f"it ended:\n{self.output()}"
            return text in self.output()

        wait_for(there, f"{text!r} to be printed")

    def wait(self) -> int:
        return self._process.wait(END_SECONDS)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def running(arguments: list[str], folder: Path, **environment: str) -> Iterator[Command]:
    """The command, gone at the end whatever happens inside."""
    command = Command(arguments, folder, **environment)
    try:
        yield command
    finally:
        command.kill()


def wait_for(condition: Callable[[], bool], what: str, seconds: float = END_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.1)


def alive(processes: set[Process]) -> set[Process]:
    return {one for one in processes if _start_time(one[0]) == one[1]}


def is_java(process: Process) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process[0]}/comm").read_text().strip() == "java"
    return False


def _descendants(pid: int) -> Iterator[Process]:
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                if start := _start_time(child):
                    yield child, start
                yield from _descendants(child)


def _start_time(pid: int) -> str | None:
    """None for a process that is gone, or that is only left to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]
