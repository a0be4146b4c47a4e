"""Ctrl-C and SIGTERM as requests that a loop can wait for, instead of exceptions in the middle of something."""

import contextlib
import select
import signal
import socket
from types import FrameType, TracebackType
from typing import Any, Self

REQUESTS = (signal.SIGINT, signal.SIGTERM)


class StopRequests:
    """Context manager: counts requests to stop inside. Main thread only, as signal handlers are."""

    def __init__(self) -> None:
        self.count = 0
        self.terminated = False
        """Whether one of them was SIGTERM, which leaves no time for anything that can be left out."""
        self._before: dict[signal.Signals, Any] = {}
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)

    def __enter__(self) -> Self:
        self._wakeup = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        self._before = {one: signal.signal(one, self._on_signal) for one in REQUESTS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)
        signal.set_wakeup_fd(self._wakeup)
        self._read.close()
        self._write.close()

    def wait(self, seconds: float) -> None:
        """Wait for so long, or until the next request."""
        select.select([self._read], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            self._read.recv(64)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.terminated = self.terminated or number == signal.SIGTERM
