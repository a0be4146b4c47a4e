"""The observer as a process of its own, against a real broker: what Prometheus and the operator read from it."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.cimpl import NewTopic
from prometheus_client.parser import text_string_to_metric_families

from millrace import metrics, naming
from millrace.kafka.clients import admin, producer
from millrace.kafka.commits import note
from millrace.kafka.embedded import EmbeddedKafka
from millrace.metrics import Metric
from millrace_lag.observer import Observer, Settings
from millrace_lag.subjects import Subject, read_path

pytestmark = pytest.mark.integration

NAMESPACE = "lagtest"
FAST = Settings(interval_seconds=0.2, deadline_seconds=5.0, list_seconds=0.3)


def spec(name: str, topic: str, **more: Any) -> dict[str, Any]:
    source = {"name": "views", "topic": topic, "schema": "user string"}
    fields = {"sources": [source], "sinks": [{"topic": f"{topic}-out"}], **more}
    return {
        "apiVersion": "millrace.io/v1alpha1",
        "kind": "StreamJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": fields,
    }


class Job:
    """A topic, and a group that the test moves as a job would."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap, self.name, self.topic = bootstrap, name, f"lagtest-{name}"
        self.group = naming.consumer_group(NAMESPACE, name)
        self.admin = admin(bootstrap)
        self.writer = producer(bootstrap)
        self.admin.create_topics([NewTopic(self.topic, 1, 1)])[self.topic].result(30)
        wait_for(lambda: self.topic in self.admin.list_topics(timeout=10).topics, "the topic")

    def write(self, count: int, at: float | None = None) -> None:
        for _ in range(count):
            self.writer.produce(self.topic, b"x", timestamp=0 if at is None else round(at * 1000))
        assert self.writer.flush(30) == 0

    def commit(self, offset: int, text: str = "") -> None:
        wait_for(lambda: self._commit(offset, text), "the commit")

    def _commit(self, offset: int, text: str) -> bool:
        asked = ConsumerGroupTopicPartitions(self.group, [TopicPartition(self.topic, 0, offset, text)])
        done = self.admin.alter_consumer_group_offsets([asked])[self.group].result(30)
        return all(one.error is None for one in done.topic_partitions)

    def subject(self, **more: Any) -> Subject:
        return Subject(NAMESPACE, self.name, self.bootstrap, {self.topic: "earliest"}, **more)


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.05)


def samples(text: bytes, metric: Metric) -> dict[tuple[str, ...], float]:
    """The samples of a metric, by its labels in their order."""
    return {
        tuple(one.labels[label] for label in metric.labels): one.value
        for family in text_string_to_metric_families(text.decode())
        for one in family.samples
        if one.name == metric.name
    }


def value(observer: Observer, metric: Metric, *labels: str) -> float | None:
    return samples(observer.metrics(), metric).get((NAMESPACE, *labels))


def verdict(observer: Observer, job: str) -> str:
    found = samples(observer.metrics(), metrics.JOB_VERDICT)
    return next((labels[2] for labels, on in found.items() if labels[1] == job and on), "")


@contextmanager
def observed(*subjects: Subject, settings: Settings = FAST) -> Iterator[Observer]:
    with Observer(lambda: subjects, settings) as observer:
        assert observer.wait(lambda views: bool(views) and all(view.jobs for view in views), 30)
        yield observer


def test_a_job_that_keeps_up_then_hangs_then_goes_on(broker: str) -> None:
    job = Job(broker, "hangs")
    job.write(10)
    job.commit(10)
    with observed(job.subject()) as observer:
        wait_for(lambda: verdict(observer, "hangs") == "ok", "ok")
        began = time.time()
        job.write(5, at=began)
        wait_for(lambda: verdict(observer, "hangs") == "stalled", "stalled")
        labels = ("hangs", job.topic, "0")
        assert value(observer, metrics.JOB_LAG_RECORDS, *labels) == 5
        assert value(observer, metrics.JOB_LAG_SECONDS, *labels) == pytest.approx(time.time() - began, abs=1)
        progress = value(observer, metrics.JOB_LAST_PROGRESS, "hangs")
        assert progress == pytest.approx(began, abs=1)
        job.commit(15)
        wait_for(lambda: verdict(observer, "hangs") == "ok", "ok again")
        assert value(observer, metrics.JOB_LAG_SECONDS, *labels) == 0


def test_a_job_that_catches_up(broker: str) -> None:
    job = Job(broker, "catches")
    job.write(2000, at=time.time() - 500)
    job.commit(0)
    with observed(job.subject()) as observer:
        for step in range(1, 40):
            job.commit(20 * step)
            if verdict(observer, "catches") == "catching-up":
                break
            time.sleep(0.2)  # the pace of the job is what is tested
        assert verdict(observer, "catches") == "catching-up"
        left = value(observer, metrics.JOB_CATCH_UP, "catches")
        assert left is not None
        assert 1 < left < 300


def test_a_job_that_falls_behind(broker: str) -> None:
    job = Job(broker, "falls")
    job.write(500)
    job.commit(0)
    with observed(job.subject()) as observer:
        for step in range(1, 60):
            job.commit(step)
            job.write(20)
            if verdict(observer, "falls") == "falling-behind":
                break
            time.sleep(0.2)  # the pace of the job is what is tested
        assert verdict(observer, "falls") == "falling-behind"


def test_a_suspended_job_keeps_its_series(broker: str) -> None:
    job = Job(broker, "sleeps")
    job.write(7)
    job.commit(3)
    with observed(job.subject(suspended=True, slo_lag_seconds=30.0)) as observer:
        assert verdict(observer, "sleeps") == "stopped"
        assert value(observer, metrics.JOB_SUSPENDED, "sleeps") == 1
        assert value(observer, metrics.JOB_SLO_LAG, "sleeps") == 30
        assert value(observer, metrics.JOB_LAG_RECORDS, "sleeps", job.topic, "0") == 4


def test_lost_records_are_counted_also_by_an_observer_that_comes_later(broker: str) -> None:
    job = Job(broker, "loses")
    job.write(10)
    job.commit(2)
    for future in job.admin.delete_records([TopicPartition(job.topic, 0, 6)]).values():
        future.result(30)
    labels = ("loses", job.topic, "0")
    with observed(job.subject()) as observer:
        assert verdict(observer, "loses") == "losing-data"
        assert value(observer, metrics.JOB_RECORDS_LOST, *labels) == 4
        job.commit(10, text=note(time.time(), lost=4))
        wait_for(lambda: value(observer, metrics.JOB_LAG_RECORDS, *labels) == 0, "the job to go on")
        assert value(observer, metrics.JOB_RECORDS_LOST, *labels) == 4
    with observed(job.subject()) as observer:
        assert value(observer, metrics.JOB_RECORDS_LOST, *labels) == 4
        assert verdict(observer, "loses") == "ok"


def test_a_rewind(broker: str) -> None:
    job = Job(broker, "rewinds")
    job.write(10)
    job.commit(10)
    with observed(job.subject()) as observer:
        job.commit(3)
        wait_for(lambda: verdict(observer, "rewinds") == "rewound", "rewound")
        assert value(observer, metrics.JOB_LAG_RECORDS, "rewinds", job.topic, "0") == 7


def test_the_margin_shrinks_with_the_age_of_the_oldest_unread_record(broker: str) -> None:
    job = Job(broker, "nears")
    job.write(1, at=time.time() - 6 * 86400)
    job.commit(0)
    with observed(job.subject()) as observer:
        margin = value(observer, metrics.JOB_RETENTION_MARGIN, "nears", job.topic, "0")
        assert margin == pytest.approx(86400, abs=5)


def test_a_broker_that_goes_away_leaves_the_figures_and_says_that_they_are_stale(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path / "own") as kafka:
        job = Job(kafka.bootstrap, "blind")
        job.write(5)
        job.commit(2)
        cluster = (kafka.bootstrap,)
        with observed(job.subject(), settings=Settings(0.2, 1.0, 0.3)) as observer:
            wait_for(lambda: value(observer, metrics.JOB_LAG_RECORDS, "blind", job.topic, "0") == 3, "the lag")
            kafka.stop()
            wait_for(lambda: samples(observer.metrics(), metrics.OBSERVER_UP)[cluster] == 0, "blind")
            assert value(observer, metrics.JOB_LAG_RECORDS, "blind", job.topic, "0") == 3
            assert verdict(observer, "blind") == "unknown"
            seen = value(observer, metrics.JOB_OBSERVED, "blind")
            failures = observer.views()[0].health.failures
            wait_for(lambda: observer.views()[0].health.failures > failures, "another try")
            assert value(observer, metrics.JOB_OBSERVED, "blind") == seen
            assert observer.troubles()


def test_one_cluster_that_is_away_blinds_nobody_else(broker: str) -> None:
    job = Job(broker, "sees")
    job.write(5)
    job.commit(2)
    away = Subject(NAMESPACE, "away", "127.0.0.1:1", {"nothing": "earliest"})
    with Observer(lambda: (job.subject(), away), Settings(0.2, 2.0, 0.3)) as observer:
        wait_for(lambda: value(observer, metrics.JOB_LAG_RECORDS, "sees", job.topic, "0") == 3, "the lag")
        wait_for(lambda: value(observer, metrics.JOB_OBSERVED, "away") == 0, "the verdict on the other")
        assert verdict(observer, "away") == "unknown"
        assert value(observer, metrics.JOB_SUSPENDED, "away") == 0


def test_a_job_that_is_added_later_is_watched_and_one_that_is_deleted_is_not(broker: str) -> None:
    first, second = Job(broker, "first"), Job(broker, "second")
    watched = [first.subject()]
    with Observer(lambda: tuple(watched), FAST) as observer:
        wait_for(lambda: value(observer, metrics.JOB_LAG_RECORDS, "first", first.topic, "0") == 0, "the first")
        watched[:] = [second.subject()]
        wait_for(lambda: value(observer, metrics.JOB_LAG_RECORDS, "second", second.topic, "0") == 0, "the second")
        assert value(observer, metrics.JOB_SUSPENDED, "first") is None


def test_within_a_second_of_the_truth_while_a_job_runs_and_is_throttled(broker: str) -> None:
    """An oracle writes ten records a second with known times; the job is moved to known places."""
    job = Job(broker, "oracle")
    written: list[float] = []
    worst = 0.0
    with observed(job.subject()) as observer:
        for step in range(40):
            written.append(time.time())
            job.write(1, at=written[-1])
            position = step if step < 15 else 15 + (step - 15) // 4  # keeps up, then reads a quarter of what comes
            job.commit(position)
            polls = observer.views()[0].health.polls
            observer.wait(lambda views, polls=polls: views[0].health.polls >= polls + 2, 10)  # type: ignore[misc]
            view = observer.views()[0].jobs[NAMESPACE, "oracle"]
            worst = max(worst, abs(view.seconds - (view.observed - written[position])))
    assert worst < 1.0


def test_as_a_process_with_its_http(broker: str, tmp_path: Path) -> None:
    job = Job(broker, "served")
    job.write(5)
    job.commit(2)
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(spec("served", job.topic, slo={"lagSeconds": 60})))
    command = [sys.executable, "-m", "millrace_lag", "--bootstrap", broker, "--jobs", str(tmp_path), "--port", "0"]
    process = subprocess.Popen([*command, "--interval", "200ms", "--exporter-names"], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        port = json.loads(process.stderr.readline())["message"].rsplit(" ", 1)[1]
        base = f"http://127.0.0.1:{port}"
        wait_for(lambda: b"kafka_consumergroup_lag{" in get(f"{base}/metrics"), "the first poll")
        text = get(f"{base}/metrics")
        assert samples(text, metrics.JOB_LAG_RECORDS)[NAMESPACE, "served", job.topic, "0"] == 3
        assert samples(text, metrics.JOB_SLO_LAG)[NAMESPACE, "served"] == 60
        (found,) = json.loads(get(f"{base}/lag"))["jobs"]
        assert (found["job"], found["lagRecords"]) == ("served", 3)
        assert json.loads(get(f"{base}/healthz")) == {"troubles": []}
    finally:
        process.terminate()
        assert process.wait(30) == 0
        assert process.stderr is not None
        process.stderr.close()


def get(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310  # our own loopback address
        return bytes(answer.read())


def test_a_mistake_in_a_spec_is_said_and_ends_it(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("kind: StreamJob\n")
    command = [sys.executable, "-m", "millrace_lag", "--bootstrap", "127.0.0.1:1", "--jobs", str(tmp_path)]
    done = subprocess.run([*command, "--port", "0"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "job.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_specs_become_subjects(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(spec("one", "t", suspend=True, trigger={"interval": "10s"})))
    (found,) = read_path(file, "kafka:9092")
    assert found == Subject(NAMESPACE, "one", "kafka:9092", {"t": "earliest"}, suspended=True, trigger_seconds=10.0)
