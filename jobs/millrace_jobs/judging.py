"""Which events are late, for which windows, and what becomes of them: vectors in, vectors out.

All times are whole microseconds since 1970, UTC. Nothing here reads or writes anything; the rules are those of
docs/concepts.md.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]
Bools = NDArray[np.bool_]
Policy = Literal["drop", "aside", "correct"]
WindowType = Literal["tumbling", "hopping", "sliding", "session"]

NEVER = -(2**62)
"""Minus infinity: far enough from any real time that adding or subtracting a duration cannot overflow."""


@dataclass(frozen=True)
class WindowRule:
    """A window in microseconds. `size` is the gap of a session; `every` equals `size` except for hopping."""

    type: WindowType
    size: int
    every: int

    @property
    def is_aligned(self) -> bool:
        return self.type in ("tumbling", "hopping")


@dataclass(frozen=True)
class JudgeRule:
    """All that decides about late. Without a window nothing is."""

    window: WindowRule | None
    delay: int
    policy: Policy
    allowed_lateness: int

    @property
    def grace(self) -> int:
        """How far behind the frontier a straggler still counts."""
        return self.allowed_lateness if self.policy == "correct" else 0


@dataclass(frozen=True)
class Judged:
    """One verdict per event. `last_missed` is NEVER for an event that missed nothing."""

    missed: Times  # number of windows it is late for
    last_missed: Times  # the latest end among those
    first: Times  # the earliest window end it counts in; meaningful for aligned windows only
    counts: Bools  # whether it counts in any window
    corrects: Bools  # whether it counts in a window that it is late for

    @property
    def late(self) -> Bools:
        return self.missed > 0


def highs_before(times: Times, high: int) -> Times:
    """The largest event time before each event, in order, starting from `high`."""
    if not len(times):
        return times
    return np.maximum.accumulate(np.concatenate((np.array([high], dtype=np.int64), times[:-1])))


def judge(rule: JudgeRule, times: Times, frontiers: Times) -> Judged:
    """Each event against its own frontier."""
    if rule.window is None:
        nothing, never = np.zeros(len(times), np.int64), np.full(len(times), NEVER, np.int64)
        return Judged(nothing, never, times, np.ones(len(times), np.bool_), np.zeros(len(times), np.bool_))
    if rule.window.is_aligned:
        return _judge_aligned(rule.window, rule.grace, times, frontiers)
    ends = times + rule.window.size if rule.window.type == "session" else times
    return _judge_single(rule.grace, ends, frontiers)


def _judge_aligned(window: WindowRule, grace: int, times: Times, frontiers: Times) -> Judged:
    """Windows are numbered by start: number k is [k·every, k·every + size)."""
    first, last = (times - window.size) // window.every + 1, times // window.every
    closed = (frontiers - window.size) // window.every
    given_up = (frontiers - grace - window.size) // window.every
    last_missed = np.minimum(last, closed)
    missed = np.maximum(last_missed - first + 1, 0)
    first_counted = np.maximum(first, given_up + 1)
    return Judged(
        missed=missed,
        last_missed=np.where(missed > 0, last_missed * window.every + window.size, NEVER),
        first=first_counted * window.every + window.size,
        counts=first_counted <= last,
        corrects=(missed > 0) & (last_missed >= first_counted),
    )


def _judge_single(grace: int, ends: Times, frontiers: Times) -> Judged:
    late = ends <= frontiers
    counts = ends > frontiers - grace
    return Judged(
        missed=late.astype(np.int64),
        last_missed=np.where(late, ends, NEVER),
        first=ends,
        counts=counts,
        corrects=late & counts,
    )
