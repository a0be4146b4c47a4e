"""A small program that stands between us and a long-running child, so that the child never outlives us.

Run as `python guard.py GRACE_SECONDS COMMAND…`. Its standard input is a pipe that only our process holds open:
however we die, the pipe ends, and the guard kills the command with all its descendants. SIGTERM asks the command to
stop and kills it after the grace; SIGUSR1 holds it where it is, SIGUSR2 lets it go on. Should the guard itself be
killed, the kernel kills the command (PR_SET_PDEATHSIG; sound here, because the guard has a single thread). Standard
library only, and it must never start a thread.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(grace_seconds: float, command: list[str]) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)  # grandchildren that lose their parent come to us, not to init
    guard = os.getpid()

    def die_with_guard() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # the guard went away before the line above could take effect
            os._exit(1)

    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=die_with_guard)
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 127
    _forward_termination(child, grace_seconds)
    if _wait(child) == "orphaned":
        _kill(child.pid)
    code = child.wait()
    _reap_descendants(child.pid, grace_seconds)
    return code if code >= 0 else 128 - code


def _forward_termination(child: subprocess.Popen[bytes], grace_seconds: float) -> None:
    def on_term(_number: int, _frame: object) -> None:
        child.send_signal(signal.SIGTERM)
        _signal_all(child.pid, signal.SIGCONT)  # one that is held could not hear it
        signal.setitimer(signal.ITIMER_REAL, max(grace_seconds, 0.001))

    signal.signal(signal.SIGALRM, lambda *_: _kill(child.pid))
    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGUSR1, lambda *_: _signal_all(child.pid, signal.SIGSTOP))
    signal.signal(signal.SIGUSR2, lambda *_: _signal_all(child.pid, signal.SIGCONT))
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _wait(child: subprocess.Popen[bytes]) -> str:
    poll = select.poll()
    exited = os.pidfd_open(child.pid)
    poll.register(exited, select.POLLIN)
    poll.register(0, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if exited in ready:
            return "exited"
        if 0 in ready and not os.read(0, 4096):
            return "orphaned"


def _kill(group: int) -> None:
    _signal_all(group, signal.SIGKILL)


def _signal_all(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _reap_descendants(group: int, grace_seconds: float) -> None:
    """Wait for what the command left behind to end by itself (a JVM removes its folders), then kill it."""
    deadline = time.monotonic() + grace_seconds
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        left = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
        if not left:
            return
        if time.monotonic() > deadline or _parent_is_gone():
            _kill(group)
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.02)


def _parent_is_gone() -> bool:
    return bool(select.select([0], [], [], 0)[0])


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
