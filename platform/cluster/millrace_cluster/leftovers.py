"""Finds and removes what a Docker daemon of ours leaves on the machine: processes, mounts, cgroups.

Knows only what is marked as ours: the environment of a process, a path below our folder, our cgroup.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from millrace.errors import UserError
from millrace_cluster.places import Places
from millrace_cluster.programs import MARK, Programs

CGROUPS = Path("/sys/fs/cgroup")
DEADLINE_SECONDS = 30.0


def mounts_below(mountinfo: str, folder: Path) -> list[str]:
    """Mount points at or below a folder, deepest first, out of the text of /proc/self/mountinfo."""
    points = [line.split()[4].encode().decode("unicode_escape") for line in mountinfo.splitlines() if line]
    inside = [point for point in points if Path(point).is_relative_to(folder)]
    return inside[::-1]  # what was mounted last lies on top


def marked_processes(places: Places) -> list[int]:
    """Processes that were started by a command of ours, except that command itself and its ancestors."""
    mark = f"{MARK}={places.cache}".encode()
    spared = set(_ancestors(os.getpid()))
    return [pid for pid in _pids() if pid not in spared and mark in _read(f"/proc/{pid}/environ").split(b"\0")]


def contained_processes(places: Places) -> list[int]:
    """Processes inside the containers of our daemon, also when their shims are gone."""
    lists = [path for root in _cgroup_roots(places) for path in root.rglob("cgroup.procs")]
    return sorted({int(pid) for path in lists for pid in _read(str(path)).split() if pid != b"0"})


def end_processes(find: Callable[[], list[int]], how: signal.Signals, seconds: float = DEADLINE_SECONDS) -> bool:
    """Signal them until none is left; False when some still are at the deadline."""
    deadline = time.monotonic() + seconds
    signalled: set[int] = set()
    while left := find():
        for pid in left:
            if pid not in signalled or how == signal.SIGKILL:
                signalled.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, how)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def remove(programs: Programs) -> None:
    """All of it, after the daemon has stopped or died. Safe to call again."""
    places = programs.places

    def processes() -> list[int]:
        return [*marked_processes(places), *contained_processes(places)]

    if not end_processes(processes, signal.SIGKILL):
        raise UserError(f"Processes {processes()} of the cluster do not end; run 'make cluster-down' again.")
    for folder in (places.live, places.docker_data):
        for point in mounts_below(_read("/proc/self/mountinfo").decode(), folder):
            programs.answers(["umount", "--lazy", point])
    _remove_cgroups(places)


def command_line(pid: int) -> bytes:
    return _read(f"/proc/{pid}/cmdline")


def _remove_cgroups(places: Places) -> None:
    for root in _cgroup_roots(places):
        folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
        for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _cgroup_roots(places: Places) -> Iterable[Path]:
    """Our cgroup: one folder with unified cgroups, one per controller without."""
    return [path for path in (CGROUPS / places.cgroup, *CGROUPS.glob(f"*/{places.cgroup}")) if path.is_dir()]


def _ancestors(pid: int) -> Iterable[int]:
    while pid > 1:
        yield pid
        stat = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        pid = int(stat[1]) if len(stat) > 1 else 0


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:  # the process is gone, or is not ours to read
        return b""
