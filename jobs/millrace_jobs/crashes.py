"""Dying on purpose: with MILLRACE_CRASH_AT=<point>:<batch> in the environment the whole job is killed at that line.

This is how the tests show that no line of a batch is a bad one to die at. Without the variable it does nothing.
"""

import contextlib
import os
import signal
from pathlib import Path

VARIABLE = "MILLRACE_CRASH_AT"
DRIVER = "MILLRACE_CRASH_DRIVER"
POINTS = (
    "judged",
    "side",
    "sink-begin",
    "sink-before-commit",
    "sink-after-commit",
    "before-ledger",
    "after-ledger",
    "after-position",
)


def arm() -> None:
    """Called once by the driver, so that a task knows whom to take along."""
    os.environ[DRIVER] = str(os.getpid())


def reach(point: str, batch: int) -> None:
    """Die here, if the environment says so. Tasks and driver all call this."""
    if os.environ.get(VARIABLE) == f"{point}:{batch}" and DRIVER in os.environ:
        _kill_job(int(os.environ[DRIVER]))


def _kill_job(driver: int) -> None:
    """The driver first, then what stands between it and us, then ourselves. Nobody else, ever."""
    line = [os.getpid()]
    while line[-1] not in (driver, 1, 0):
        line.append(_parent(line[-1]))
    between = line[1:-1] if line[-1] == driver else []
    for pid in (driver, *between, *_children(driver)):
        with contextlib.suppress(ProcessLookupError):
            if pid not in (0, 1, os.getpid()):
                os.kill(pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _children(pid: int) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
