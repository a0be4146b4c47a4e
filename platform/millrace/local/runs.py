"""A run: the jobs of some specs on one broker of this machine or another one, from the first topic to the last process.

`millrace run` and `millrace demo` are both this. It starts and stops things and holds no figures of its own.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from millrace.errors import UserError
from millrace.kafka import topics as kafka_topics
from millrace.kafka.embedded import EmbeddedKafka
from millrace.local.alerts import Episode
from millrace.local.drivers import Driver, DriverSettings
from millrace.local.lags import LagWatch
from millrace.local.screens import Screen
from millrace.local.signals import StopRequests
from millrace.local.state import StateFolder
from millrace.local.tables import Row
from millrace.local.topics import plan_topics, source_topics
from millrace.naming import consumer_group
from millrace.resources import StreamJob
from millrace.resources.metadata import Resource

LOOK_SECONDS = 0.5

Say = Callable[[str], None]


@dataclass(frozen=True)
class RunSettings:
    """What the command line says about a run."""

    state: Path
    bootstrap: str | None = None
    """None: a broker of our own."""
    until_caught_up: bool = False
    metrics_port: int = 0
    """The first job's; the others get the ports after it. 0: each takes a free one."""
    code: tuple[Path, ...] = ()
    """Folders with the code of `python` steps."""


class Run:
    """Context manager: broker and topics are there inside, and after it nothing that it started is.

    The jobs start with `start`, so that whoever feeds them can be ready first.
    """

    def __init__(self, resources: Sequence[Resource], settings: RunSettings, say: Say) -> None:
        self._resources = resources
        self._settings = settings
        self._say = say
        self._stack = contextlib.ExitStack()
        self._lags: LagWatch | None = None
        self.bootstrap = ""
        self.drivers: list[Driver] = []

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            state = stack.enter_context(StateFolder(self._settings.state))
            self.bootstrap = self._settings.bootstrap or self._own_broker(stack, state)
            state.belongs_to(self._make_topics())
            self.drivers = self._plan_drivers(state)
            self._lags = stack.enter_context(LagWatch(self.bootstrap, {one.name: _reads(one) for one in self.drivers}))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def start(self) -> None:
        """Start the driver of every job."""
        for driver in self.drivers:
            driver.start()
            self._stack.callback(driver.stop)
            self._say(f"Job {driver.name} starts; its log is {driver.paths.log}")
        self._stack.callback(self.ask_to_stop)  # runs first, so that all of them stop at the same time

    def ask_to_stop(self) -> None:
        for driver in self.drivers:
            driver.terminate()

    def kill(self) -> None:
        for driver in self.drivers:
            driver.kill()

    def has_ended(self) -> bool:
        return all(driver.exit_code() is not None for driver in self.drivers)

    def has_failed(self) -> bool:
        return any(driver.failure() is not None for driver in self.drivers)

    def rows(self) -> list[Row]:
        return [self._row(driver) for driver in self.drivers]

    def _row(self, driver: Driver) -> Row:
        ended = driver.exit_code() is not None  # asked first: the status that follows is then the last one
        lag = self._lags.lag(driver.name) if self._lags is not None else None
        return Row(driver.name, driver.paths.log, driver.status(), lag, driver.failure(), ended)

    def _own_broker(self, stack: contextlib.ExitStack, state: StateFolder) -> str:
        self._say("Starting a Kafka broker of our own")
        broker = stack.enter_context(EmbeddedKafka(state.broker))
        self._say(f"Kafka is ready at {broker.bootstrap}")
        return broker.bootstrap

    def _make_topics(self) -> str:
        """Make what is missing and return the cluster's identity."""
        cluster = kafka_topics.look(self.bootstrap)
        plans = kafka_topics.fit_to_brokers(plan_topics(self._resources), cluster.brokers)
        made = kafka_topics.create_missing(self.bootstrap, plans)
        if made:
            self._say(f"Made the topics {', '.join(sorted(made))}")
        return cluster.identity

    def _plan_drivers(self, state: StateFolder) -> list[Driver]:
        settings = self._settings
        shared = DriverSettings(self.bootstrap, settings.until_caught_up, python_path=settings.code)
        return [
            Driver(job, state.job(job.metadata.namespace, job.metadata.name), shared, _port(settings, number))
            for number, job in enumerate(self._jobs())
        ]

    def _jobs(self) -> list[StreamJob]:
        jobs = [one for one in self._resources if isinstance(one, StreamJob)]
        for job in jobs:
            if job.spec.suspend:
                self._say(f"Job {job.metadata.namespace}/{job.metadata.name} is suspended by its spec and does not run")
        running = [job for job in jobs if not job.spec.suspend]
        if not running:
            raise UserError("There is no StreamJob to run in these files: add one, or name other files.")
        return running


def watch(
    run: Run,
    screen: Screen,
    requests: StopRequests,
    headline: Callable[[], str],
    is_over: Callable[[], bool] = lambda: False,
    patience: int = 0,
    alerts: Callable[[], Sequence[Episode]] | None = None,
) -> None:
    """Show the run until all its jobs have ended: by themselves, because it is over, or on request.

    The first request lets each job finish its batch, the second does not. Before that come as many Ctrl-C as
    `patience` says, for `is_over` to answer.
    """
    asked = False
    while not run.has_ended():
        screen.show(run.rows(), headline(), alerts and alerts())
        urgent = requests.count - (0 if requests.terminated else patience)
        if urgent > 1:
            run.kill()
        elif not asked and (urgent == 1 or is_over()):
            asked = True
            if urgent == 1:
                screen.say("Stopping at the next batch boundary (Ctrl-C again: at once)")
            run.ask_to_stop()
        requests.wait(LOOK_SECONDS)
    screen.show(run.rows(), headline(), alerts and alerts())


def _reads(driver: Driver) -> tuple[str, tuple[str, ...]]:
    metadata = driver.job.metadata
    return consumer_group(metadata.namespace, metadata.name), source_topics(driver.job)


def _port(settings: RunSettings, number: int) -> int:
    return settings.metrics_port + number if settings.metrics_port else 0
