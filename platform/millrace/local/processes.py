"""Long-running children that never outlive us: started behind `guard.py`, stopped with a deadline."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from millrace.errors import UserError

GUARD = Path(__file__).with_name("guard.py")
GUARD_SLACK_SECONDS = 10.0  # what the guard gets on top of the child's grace, before we kill the guard too


PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Get a SIGTERM when our parent dies, however it dies. Sound only for a parent with a single thread, as make is."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """A guarded process. Its guard has a session of its own, so Ctrl-C in the terminal reaches us alone."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        grace_seconds: float,
        stdout: IO[bytes] | int,
        stderr: IO[bytes] | int,
        env: Mapping[str, str] | None = None,
    ) -> None:
        if not hasattr(os, "pidfd_open"):
            raise UserError("Local mode needs Linux 5.3 or newer; run it in a Linux container or virtual machine.")
        self._grace_seconds = grace_seconds
        self._guard = subprocess.Popen(
            # -I -S: the guard needs nothing but the standard library, and starts in a few milliseconds without the rest
            [sys.executable, "-I", "-S", str(GUARD), str(grace_seconds), *command],
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            env=env,
            start_new_session=True,
        )

    @property
    def stdout(self) -> IO[bytes]:
        assert self._guard.stdout is not None, "only for children started with stdout=PIPE"  # noqa: S101
        return self._guard.stdout

    def exit_code(self) -> int | None:
        """The command's exit code, 128 + n for signal n, or None while it runs."""
        return self._guard.poll()

    def terminate(self) -> None:
        """Ask it to stop, and do not wait. The guard kills it when the grace is over."""
        if self.exit_code() is None:
            self._guard.send_signal(signal.SIGTERM)

    def hold(self) -> None:
        """Stop it where it is, as if it hung, until it may go on or is asked to end."""
        if self.exit_code() is None:
            self._guard.send_signal(signal.SIGUSR1)

    def go_on(self) -> None:
        if self.exit_code() is None:
            self._guard.send_signal(signal.SIGUSR2)

    def stop(self) -> int:
        """Ask it to stop and wait until it and all its descendants are gone."""
        self.terminate()
        try:
            code = self._guard.wait(2 * self._grace_seconds + GUARD_SLACK_SECONDS)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            code = self._guard.wait()
        self._release()
        return code

    def kill(self) -> None:
        """End it now, with all its descendants, and do not wait: to the guard it looks as if we had died."""
        if self._guard.stdin is not None:
            self._guard.stdin.close()

    def wait(self, timeout_seconds: float | None = None) -> int:
        """Wait for it to end by itself; raises TimeoutError when it does not."""
        try:
            code = self._guard.wait(timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError from error
        self._release()
        return code

    def _release(self) -> None:
        for pipe in (self._guard.stdin, self._guard.stdout, self._guard.stderr):
            if pipe is not None:
                pipe.close()
