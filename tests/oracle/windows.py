"""Which windows an event has, for which it is late, and in which it counts. Results are made elsewhere."""

from dataclasses import dataclass, replace
from typing import Literal

from tests.oracle.model import Job, Record, Window
from tests.oracle.parsing import Fields

Outcome = Literal["dropped", "aside", "corrected"]
Span = tuple[int, int]


@dataclass(frozen=True)
class Judged:
    """A valid event with its place among the windows. A frontier of None is minus infinity."""

    record: Record
    fields: Fields
    time: int
    frontier: int | None
    missed: tuple[Span, ...] = ()  # the windows it is late for, whether or not it is let in by `correct`
    counts_in: tuple[Span, ...] = ()
    outcome: Outcome | None = None

    @property
    def last_missed(self) -> int:
        return max(end for _, end in self.missed)

    @property
    def late_by(self) -> int:
        return 0 if self.frontier is None or not self.missed else self.frontier - self.last_missed


def spans(window: Window, time: int) -> list[Span]:
    """An event's own windows by start and the `window_end` that decides about late."""
    if window.type == "session":
        return [(time, time + window.size)]
    if window.type == "sliding":
        return [(time - window.size, time)]
    last, first = time // window.every, (time - window.size) // window.every + 1
    return [(k * window.every, k * window.every + window.size) for k in range(first, last + 1)]


def judge_windows(job: Job, event: Judged) -> Judged:
    """The event with the windows it missed, those it counts in, and what became of it."""
    if job.window is None:
        return event
    own = spans(job.window, event.time)
    frontier = event.frontier
    missed = [span for span in own if frontier is not None and span[1] <= frontier]
    corrected = [span for span in missed if frontier is not None and _let_in(job, span[1], frontier)]
    counts_in = tuple(span for span in own if span not in missed or span in corrected)
    outcome = _outcome(job, bool(corrected)) if missed else None
    return replace(event, missed=tuple(missed), counts_in=counts_in, outcome=outcome)


def _let_in(job: Job, window_end: int, frontier: int) -> bool:
    return job.policy == "correct" and window_end > frontier - job.allowed_lateness


def _outcome(job: Job, corrected: bool) -> Outcome:
    if job.policy == "aside":
        return "aside"
    return "corrected" if corrected else "dropped"
