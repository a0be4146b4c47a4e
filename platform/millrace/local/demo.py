"""The course of the demo: the shop opens, feeds the jobs, closes, and the jobs read what is left.

Decides when the demo is over and compares what was sent with what was read; draws nothing and starts no process.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from millrace.errors import UserError
from millrace.local.drama import Drama, caught_up
from millrace.local.feed import Feed
from millrace.local.monitoring import Monitoring
from millrace.local.runs import Run
from millrace.local.signals import StopRequests
from millrace.local.tables import Row
from millrace.resources.reading import SpecError
from millrace.shop import Shop

# Ten minutes are in the books when the demo begins: there is a backlog to catch up with, and windows to close.
SHOP = Shop(events_per_second=200, users=4_000, history=timedelta(minutes=10))
START_SECONDS = 120.0
DRAIN_SECONDS = 180.0


@dataclass(frozen=True)
class Agreement:
    """What the shop says it sent to a topic beside what a job says it read from it."""

    job: str
    source: str
    sent: int
    read: int
    malformed_sent: int
    malformed_read: int
    ahead_sent: int
    ahead_read: int

    @property
    def holds(self) -> bool:
        return (self.sent, self.malformed_sent, self.ahead_sent) == (self.read, self.malformed_read, self.ahead_read)


class Course:
    """Opens with the feed; closes it after the time asked for, or on the first request to stop."""

    def __init__(
        self,
        run: Run,
        feed: Feed,
        requests: StopRequests,
        length: timedelta | None,
        drama: Drama,
        monitoring: Monitoring | None,
    ) -> None:
        self._run = run
        self._feed = feed
        self._requests = requests
        self._drama = drama
        self._monitoring = monitoring
        self._opened = time.monotonic()
        self._length = None if length is None else length.total_seconds()
        self._counting_since: float | None = None
        self._closed: float | None = None

    def is_over(self) -> bool:
        """True when all that was sent has been read, or when waiting for it makes no sense any more."""
        self._feed.check()
        self._play()
        if self._run.has_failed():
            return True
        if self._closed is None:
            return False
        return self.all_read() or time.monotonic() > self._closed + DRAIN_SECONDS

    def _play(self) -> None:
        if self._monitoring is not None:
            self._monitoring.look(self._run.rows(), self._counted() > 0)
        if self._closed is not None:
            return
        if self._requests.count or self._time_is_up():
            self._drama.end()
            self._feed.close()
            self._closed = time.monotonic()
        else:
            self._drama.step(self._counted(), self._run.rows())

    def all_read(self) -> bool:
        rows = self._run.rows()
        return all(row.status.sources for row in rows) and all(one.sent == one.read for one in self.agreements())

    def agreements(self) -> list[Agreement]:
        return compare(self._run.rows(), self._feed.sent())

    def headline(self) -> str:
        sent = ", ".join(f"{sum(kinds.values()):,} {topic}" for topic, kinds in sorted(self._feed.sent().items()))
        return f"{self._shop_is()}   sent {sent or 'nothing yet'}   Kafka {self._run.bootstrap}   Ctrl-C ends it"

    def _shop_is(self) -> str:
        if self._closed is not None:
            return "Shop closed, the jobs read what is left"
        left = "" if self._length is None else f", closes in {max(0.0, self._length - self._counted()):.0f} s"
        return f"Shop open for {time.monotonic() - self._opened:.0f} s{left}"

    def _time_is_up(self) -> bool:
        return self._length is not None and self._counted() >= self._length

    def _counted(self) -> float:
        """Seconds since all jobs have caught up. Until then takes a while, and differs from machine to machine."""
        now = time.monotonic()
        ready = caught_up(self._run.rows()) or now > self._opened + START_SECONDS
        if self._counting_since is None and ready:
            self._counting_since = now
        return 0.0 if self._counting_since is None else now - self._counting_since


def compare(rows: Sequence[Row], sent: dict[str, dict[str, int]]) -> list[Agreement]:
    """One line for each source of each job that reads one of the shop's topics."""
    return [
        Agreement(
            job=row.name,
            source=name,
            sent=sum(sent[source.topic].values()),
            read=source.counts.read,
            malformed_sent=sent[source.topic].get("malformed", 0),
            malformed_read=source.counts.malformed,
            ahead_sent=sent[source.topic].get("ahead", 0),
            ahead_read=source.counts.future,
        )
        for row in rows
        for name, source in row.status.sources.items()
        if source.topic in sent
    ]


def example_files(names: Sequence[str]) -> list[Path]:
    """The spec files of the examples with these names."""
    known = {file.stem: file for file in sorted(examples_folder().glob("*.yaml"))}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SpecError(f"There is no example {name!r}; there are {', '.join(known)}." for name in unknown)
    return [known[name] for name in names]


def examples_folder() -> Path:
    """In the repository beside the runtime; in an installed package inside it."""
    package = Path(__file__).parents[1]
    for folder in (package / "examples", package.parents[1] / "jobs" / "examples"):
        if folder.is_dir():
            return folder
    raise UserError("The example specs are not installed: run the demo from a checkout of the repository.")
