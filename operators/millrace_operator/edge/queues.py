"""A queue of keys to look at: each key is in it once, may wait for a time, and is worked on by one worker at a time."""

import asyncio
import heapq
import itertools
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class WakeQueue(Generic[K]):
    """For one event loop. `wake` brings a key forward, never back: the earliest wish counts."""

    def __init__(self) -> None:
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = itertools.count()
        self._active: set[K] = set()
        self._again: dict[K, float] = {}
        self._news = asyncio.Event()

    def wake(self, key: K, after: float = 0.0) -> None:
        due = asyncio.get_running_loop().time() + after
        if key in self._active:  # while it is worked on, the wish waits for the end of the work
            self._again[key] = min(due, self._again.get(key, due))
        elif due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._heap, (due, next(self._order), key))
            self._news.set()

    def forget(self, key: K) -> None:
        self._due.pop(key, None)
        self._again.pop(key, None)

    async def take(self) -> K:
        """The next key that is due; whoever takes it says `done` at the end."""
        while True:
            key, wait = self._next()
            if key is not None:
                return key
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), wait)
            except TimeoutError:
                continue

    def done(self, key: K) -> None:
        self._active.discard(key)
        again = self._again.pop(key, None)
        if again is not None:
            self.wake(key, max(0.0, again - asyncio.get_running_loop().time()))

    def ready(self) -> int:
        """How many keys are due now and wait for a worker."""
        now = asyncio.get_running_loop().time()
        return sum(due <= now for due in self._due.values())

    def _next(self) -> tuple[K | None, float | None]:
        now = asyncio.get_running_loop().time()
        while self._heap:
            due, _, key = self._heap[0]
            if self._due.get(key) != due:  # was brought forward or forgotten
                heapq.heappop(self._heap)
            elif due > now:
                return None, due - now
            else:
                heapq.heappop(self._heap)
                del self._due[key]
                self._active.add(key)
                return key, 0.0
        return None, None
