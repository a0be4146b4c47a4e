"""A StreamJob's life on a real cluster: made, edited, killed, suspended, resumed, deleted. Nothing is lost."""

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from millrace.kafka.clients import consumer, producer
from millrace.kafka.topics import TopicPlan, create_missing
from tests.e2e.kafka import Kafka, broker
from tests.e2e.kube import Namespace
from tests.e2e.operating import JOB_IMAGE, KILL, Body, Resources, install_crds, operator

pytestmark = pytest.mark.e2e

NAME = "views"
START = datetime(2026, 1, 1, tzinfo=UTC)


def job(kafka: Kafka) -> Body:
    source = {
        "name": "views",
        "topic": "pageviews",
        "schema": "user string, url string, at timestamp",
        "eventTime": {"column": "at"},
    }
    window = {"type": "tumbling", "size": "1m", "by": ["url"], "aggregates": {"views": "count(*)"}}
    return {
        "kind": "StreamJob",
        "metadata": {"name": NAME},
        "spec": {
            "kafka": {"bootstrapServers": kafka.inside},
            "sources": [source],
            "transform": [{"window": window}],
            "sinks": [{"topic": "per-minute", "key": ["window_start", "url"]}],
            "driver": {"cpu": "200m", "memory": "1Gi"},
            "executors": {"instances": 1, "cpu": "200m", "memory": "1Gi"},
        },
    }


@pytest.fixture(scope="module")
def kafka(namespace: Namespace) -> Iterator[Kafka]:
    with broker(namespace, JOB_IMAGE) as made:
        create_missing(made.outside, [TopicPlan("pageviews", 2), TopicPlan("per-minute", 2)])
        yield made


@pytest.fixture(scope="module")
def resources(namespace: Namespace, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resources]:
    install_crds()
    log: Path = tmp_path_factory.mktemp("operator") / "log"
    with operator(namespace.name, log, "--bootstrap", kafka.inside):
        yield Resources(namespace)
    Resources(namespace).release()
    print(log.read_text()[-4000:])


@pytest.fixture(scope="module")
def log(kafka: Kafka) -> "Log":
    return Log(kafka.outside)


class Log:
    """What was written to the source, and what must therefore be in the sink."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap, self._producer = bootstrap, producer(bootstrap)
        self.expected: Counter[tuple[str, str]] = Counter()
        self._minute = 0

    def write(self, minutes: int = 3) -> None:
        """Some minutes of events, in order, on both partitions."""
        for minute in range(self._minute, self._minute + minutes):
            for number in range(40):
                at = START + timedelta(minutes=minute, seconds=number)
                self._send(at, f"/page{number % 3}", number % 2)
        self._minute += minutes

    def close_windows(self) -> None:
        """One late moment on each partition, which lets every window before it close."""
        for partition in (0, 1):
            self._send(START + timedelta(minutes=self._minute + 10), "/end", partition)
        self._minute += 20

    def _send(self, at: datetime, url: str, partition: int) -> None:
        value = json.dumps({"user": "u", "url": url, "at": at.isoformat()})
        self._producer.produce("pageviews", value=value, partition=partition)
        self.expected[at.replace(second=0, microsecond=0).strftime("%Y-%m-%dT%H:%M"), url] += 1
        assert self._producer.flush(30) == 0

    def results(self) -> list[tuple[tuple[str, str], int]]:
        """Every committed record of the sink: a result that came twice is in here twice."""
        settings = {"auto.offset.reset": "earliest", "isolation.level": "read_committed", "enable.partition.eof": True}
        reader = consumer(self._bootstrap, uuid.uuid4().hex, **settings)
        reader.subscribe(["per-minute"])
        found: list[tuple[tuple[str, str], int]] = []
        ended: set[int | None] = set()
        deadline = time.monotonic() + 60
        while len(ended) < 2 and time.monotonic() < deadline:
            message = reader.poll(1)
            if message is not None and message.error() is not None:
                ended.add(message.partition())
            elif message is not None:
                row = json.loads(message.value() or b"{}")
                found.append(((row["window_start"][:16], row["url"]), row["views"]))
        reader.close()
        return found


def closed(log: Log) -> dict[tuple[str, str], int]:
    """What must be published: all but the markers that are still open."""
    return {key: count for key, count in log.expected.items() if key[1] != "/end"}


def assert_exactly_once(log: Log, resources: Resources) -> None:
    def complete() -> bool:
        return {key for key, _ in log.results()} >= closed(log).keys()

    resources.wait("all results", complete, 120)
    found = [(key, count) for key, count in log.results() if key[1] != "/end"]
    assert Counter(dict(found)) == Counter(closed(log))
    assert len(found) == len(closed(log))  # none of them twice


def batch(resources: Resources) -> int:
    return int(resources.ask_driver(NAME).get("batch") or 0)


def test_an_applied_job_runs_and_counts_every_event_once(resources: Resources, log: Log, kafka: Kafka) -> None:
    log.write()
    log.close_windows()
    resources.create(job(kafka))
    resources.wait("the driver's pod", lambda: resources.driver(NAME) is not None, 10)
    resources.wait_for_state(NAME, "Running", 180)
    assert resources.condition("StreamJob", NAME, "Ready")[0] == "True"
    assert_exactly_once(log, resources)
    claims = resources.core.list_namespaced_persistent_volume_claim(resources.name).items
    assert [claim.metadata.name for claim in claims] == [f"{NAME}-state"]


def test_a_live_change_reaches_the_driver_without_a_restart(resources: Resources) -> None:
    before = resources.driver(NAME).metadata.uid
    resources.edit("StreamJob", NAME, slo={"lagSeconds": 30})
    generation = resources.get("StreamJob", NAME)["metadata"]["generation"]

    def taken() -> bool:
        return bool(resources.get("StreamJob", NAME)["status"]["observedGeneration"] == generation)

    resources.wait("the new generation", taken, 20)
    text = resources.core.read_namespaced_config_map(f"{NAME}-spec", resources.name).data["job.json"]
    assert json.loads(text)["spec"]["slo"]["lagSeconds"] == 30
    assert resources.driver(NAME).metadata.uid == before
    assert resources.state(NAME) == "Running"


def test_executors_come_and_go_without_a_restart(resources: Resources) -> None:
    before = resources.driver(NAME).metadata.uid
    for wanted in (2, 1):
        resources.edit("StreamJob", NAME, executors={"instances": wanted})
        resources.wait(f"{wanted} executors", lambda n=wanted: len(resources.executors(NAME)) == n, 180)  # type: ignore[misc]
    assert resources.driver(NAME).metadata.uid == before


def test_a_restart_change_goes_on_from_the_checkpoint(resources: Resources, log: Log) -> None:
    before, done = resources.driver(NAME).metadata.uid, batch(resources)
    resources.edit("StreamJob", NAME, trigger={"interval": "2s"})
    resources.wait(
        "a new driver", lambda: (pod := resources.driver(NAME)) is not None and pod.metadata.uid != before, 120
    )
    log.write()
    log.close_windows()
    resources.wait_for_state(NAME, "Running", 180)
    assert_exactly_once(log, resources)
    assert batch(resources) > done
    assert resources.get("StreamJob", NAME)["status"]["revision"] == 2


def test_a_change_that_does_not_fit_the_state_is_refused_and_the_job_runs_on(resources: Resources) -> None:
    before = resources.driver(NAME).metadata.uid
    window = {"type": "tumbling", "size": "5m", "by": ["url"], "aggregates": {"views": "count(*)"}}
    good = resources.get("StreamJob", NAME)["spec"]["transform"]
    resources.edit("StreamJob", NAME, transform=[{"window": window}])
    message = resources.wait_for_condition(NAME, "Progressing", "False", "NeedsNewState", 30)
    assert "window.size" in message
    assert resources.condition("StreamJob", NAME, "Ready")[0] == "True"
    assert resources.driver(NAME).metadata.uid == before
    events = resources.core.list_namespaced_event(resources.name, field_selector=f"involvedObject.name={NAME}").items
    assert "NeedsNewState" in {event.reason for event in events}
    resources.edit("StreamJob", NAME, transform=good)
    resources.wait_for_condition(NAME, "Progressing", "False", "Settled", 30)


def test_a_killed_driver_comes_back_and_nothing_is_lost_or_doubled(resources: Resources, log: Log) -> None:
    log.write()
    resources.in_driver(NAME, KILL)
    log.close_windows()
    resources.wait("the restart to be told", lambda: resources.get("StreamJob", NAME)["status"]["restarts"] >= 1, 60)
    resources.wait_for_state(NAME, "Running", 180)
    assert_exactly_once(log, resources)
    assert "Killed" in resources.get("StreamJob", NAME)["status"]["failures"]["causes"]


def test_suspend_and_resume_keep_the_state(resources: Resources, log: Log) -> None:
    done = batch(resources)
    resources.edit("StreamJob", NAME, suspend=True)
    resources.wait_for_state(NAME, "Suspended", 120)
    assert resources.driver(NAME) is None
    log.write()
    log.close_windows()
    resources.edit("StreamJob", NAME, suspend=False)
    resources.wait_for_state(NAME, "Running", 180)
    assert_exactly_once(log, resources)
    assert batch(resources) > done


def test_deletion_stops_gracefully_and_keeps_the_volume(resources: Resources) -> None:
    resources.delete("StreamJob", NAME)
    resources.wait("the resource to go", lambda: not resources.exists("StreamJob", NAME), 150)
    resources.wait("the driver to go", lambda: resources.driver(NAME) is None, 30)
    claims = resources.core.list_namespaced_persistent_volume_claim(resources.name).items
    assert [claim.metadata.name for claim in claims] == [f"{NAME}-state"]

    def left() -> list[str]:
        found = resources.apps.list_namespaced_stateful_set(resources.name).items
        return [one.metadata.name for one in found]

    resources.wait("the StatefulSet to go", lambda: left() == [], 60)
