"""The real platform on this machine: a broker, a shop that sells, a driver that reads it, and the lag observer."""

import subprocess
import sys
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException, TopicPartition

from millrace.kafka.clients import REQUEST_SECONDS, consumer
from millrace.local.demo import example_files
from millrace.local.feed import Feed
from millrace.local.processes import Child
from millrace.local.prometheus import HOST, free_port
from millrace.local.runs import Run, RunSettings
from millrace.naming import consumer_group
from millrace.resources import Topic
from millrace.resources.reading import read_files
from millrace.shop import Burst, Mix, Shop
from tests.integration.panels.waiting import wait_until

COORDINATOR_SECONDS = 60.0
JOB = ("shop", "pageviews-per-minute")
# Five minutes of history let windows close at once; a crowd that comes back late gives stragglers that can be shown.
SHOP = Shop(
    events_per_second=100, history=timedelta(minutes=5), mix=Mix(ahead=0.01), burst=Burst(at_seconds=20, events=300)
)


class PlatformRun:
    """Context manager: everything runs inside, and is gone after."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self.driver = f"{HOST}:{free_port()}"
        self.observer = f"{HOST}:{free_port()}"

    def __enter__(self) -> Self:
        specs = example_files([JOB[1]])
        resources = [*read_files(specs), *_topics_of("orders-per-product")]  # the shop sells, whoever reads about it
        with ExitStack() as stack:
            settings = RunSettings(self._folder / "state", metrics_port=_port(self.driver))
            run = stack.enter_context(Run(resources, settings, lambda _: None))
            run.start()
            stack.enter_context(Feed(run.bootstrap, SHOP))
            _wait_for_coordinator(run.bootstrap)
            stack.callback(self._start_observer(run.bootstrap, specs[0]).stop)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start_observer(self, bootstrap: str, spec: Path) -> Child:
        command = [sys.executable, "-m", "millrace_lag", "--bootstrap", bootstrap, "--only-bootstrap"]
        command += ["--jobs", str(spec), "--host", HOST, "--port", str(_port(self.observer)), "--interval", "1s"]
        with (self._folder / "observer.log").open("wb") as log:
            return Child(command, grace_seconds=10, stdout=log, stderr=subprocess.STDOUT)


def _wait_for_coordinator(bootstrap: str) -> None:
    """Wait until the new broker has a coordinator for the job's group.

    Asked through librdkafka's admin client before that, it answers NOT_COORDINATOR, of which the whole process dies.
    A consumer gets the same answer as an error.
    """
    client = consumer(bootstrap, consumer_group(*JOB))

    def answers() -> bool:
        with suppress(KafkaException):
            return bool(client.committed([TopicPartition("pageviews", 0)], timeout=REQUEST_SECONDS))
        return False

    with closing(client):
        wait_until(answers, COORDINATOR_SECONDS, "the broker has a coordinator for the job's group")


def _topics_of(example: str) -> list[Topic]:
    return [one for one in read_files(example_files([example])) if isinstance(one, Topic)]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
