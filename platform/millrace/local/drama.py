"""What the demo lets go wrong on purpose, so that alerts have something to say: stragglers in a heap, a job that hangs.

Decides when, from facts and not from the clock alone: nothing happens before the jobs have caught up, and a job is held
until its alert fires. Whoever runs the demo calls `step` over and over, and `end` when it is over.
"""

from collections.abc import Callable, Sequence

from millrace.local.alerts import Episode, fires
from millrace.local.drivers import Driver
from millrace.local.feed import Feed
from millrace.local.tables import Row
from millrace.shop import Burst

LEAST_SECONDS = 50.0  # a shorter demo could not show an alert from its beginning to its end
CROWD_AT_SECONDS = 8.0
CROWD = Burst(at_seconds=0, events=600, over_seconds=4)
HOLD_AT_SECONDS = 18.0
HOLD_AT_ALONE_SECONDS = 32.0  # where no other job is there to tell of the burst meanwhile
HOLD_SECONDS = 35.0  # at most, should the alert never come
HOLD_NEEDS_SECONDS = 25.0  # to fire, to be read, and to resolve
SHOWN_SECONDS = 3.0  # so long it is held on, for the alert to be seen
CAUGHT_UP_SECONDS = 10.0
QUICK_SECONDS = 3.0  # the alert waits for three usual batches: a job with long ones would have to be held for long
HOLD_ALERT = "StreamJobNotProgressing"

Say = Callable[[str], None]


class Drama:
    """The acts of one demo. `alerts` is None where none can be shown; no job is held then."""

    def __init__(
        self,
        feed: Feed,
        drivers: Sequence[Driver],
        say: Say,
        length: float | None,
        alerts: Callable[[], Sequence[Episode]] | None,
    ) -> None:
        self._feed = feed
        self._driver = drivers[-1]
        self._hold_at = HOLD_AT_SECONDS if len(drivers) > 1 else HOLD_AT_ALONE_SECONDS
        self._say = say
        self._length = length
        self._alerts = alerts
        self._crowd_came = False
        self._held: float | None = None
        self._seen: float | None = None
        self._over = alerts is None
        if self._is_short:
            say(f"No burst and no held job: the demo needs {LEAST_SECONDS:.0f} s to show their alerts come and go.")

    def step(self, counted: float, rows: Sequence[Row]) -> None:
        """Do what is due, `counted` seconds after all jobs ran."""
        if self._is_short:
            return
        if self._held is not None:
            self._hold_on(counted)
        elif caught_up(rows):
            self._begin(counted, rows)

    def end(self) -> None:
        """Let go of what is held, and say what there was no time for."""
        if self._held is not None:
            self._let_go()
        elif not self._is_short and not self._over:
            missed = "no job was held" if self._crowd_came else "no burst came and no job was held"
            self._say(f"The jobs caught up too late for all of it: {missed}.")
        self._over = True

    @property
    def _is_short(self) -> bool:
        return self._length is not None and self._length < LEAST_SECONDS

    @property
    def _name(self) -> str:
        return self._driver.job.metadata.name

    def _begin(self, counted: float, rows: Sequence[Row]) -> None:
        if not self._crowd_came and counted >= CROWD_AT_SECONDS:
            self._crowd_came = True
            minutes = CROWD.late_seconds / 60
            self._say(f"The demo sends a burst now: {CROWD.events} page views that come {minutes:.0f} minutes late")
            self._feed.add(CROWD)
        elif not self._over and counted >= self._hold_at and self._has_time(counted) and _quick(rows[-1]):
            self._held = counted
            self._say(f"The demo holds {self._name} now (SIGSTOP): it hangs, and knows nothing of it")
            self._driver.hold()

    def _has_time(self, counted: float) -> bool:
        return self._length is None or self._length - counted >= HOLD_NEEDS_SECONDS

    def _hold_on(self, counted: float) -> None:
        if self._seen is None and self._alerts is not None and fires(self._alerts(), HOLD_ALERT, self._driver.name):
            self._seen = counted
        since = self._held if self._held is not None else counted
        if counted >= since + HOLD_SECONDS or (self._seen is not None and counted >= self._seen + SHOWN_SECONDS):
            self._let_go()

    def _let_go(self) -> None:
        self._held, self._over = None, True
        self._driver.go_on()
        self._say(f"The demo lets {self._name} go on (SIGCONT)")


def caught_up(rows: Sequence[Row]) -> bool:
    """Whether every job has read the history and follows what comes."""
    return all(
        row.status.batch is not None and row.lag is not None and row.lag.seconds < CAUGHT_UP_SECONDS for row in rows
    )


def _quick(row: Row) -> bool:
    return row.status.batch_seconds is not None and row.status.batch_seconds < QUICK_SECONDS
