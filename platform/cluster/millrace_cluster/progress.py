"""One line when a step begins, one while it takes long, one when it is done, each with the time it took."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

TICK_SECONDS = 20.0


def say(line: str) -> None:
    print(f"cluster: {line}", flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Frame a long step with its progress lines."""
    started = time.monotonic()
    over = threading.Event()
    ticker = threading.Thread(target=_tick, args=(what, started, over), daemon=True)
    say(f"{what} ...")
    ticker.start()
    try:
        yield
    finally:
        over.set()
        ticker.join()
    say(f"{what}: done in {_elapsed(started)}")


def _tick(what: str, started: float, over: threading.Event) -> None:
    while not over.wait(TICK_SECONDS):
        say(f"{what}: {_elapsed(started)} so far")


def _elapsed(started: float) -> str:
    return duration(time.monotonic() - started)


def duration(seconds: float) -> str:
    """A time for people: `0.4 s`, `12 s`, `5 min 31 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
