"""Why a job stands still, provoked for real: each cause is named, with the words that help."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millrace.kafka.clients import producer
from millrace.kafka.topics import TopicPlan, create_missing
from tests.e2e.kafka import Kafka, broker
from tests.e2e.kube import Namespace
from tests.e2e.operating import JOB_IMAGE, Body, Resources, install_crds, operator

pytestmark = pytest.mark.e2e


def job(name: str, bootstrap: str, **spec: Any) -> Body:
    source = {"name": "views", "topic": "pageviews", "schema": "user string, url string"}
    made = {
        "kafka": {"bootstrapServers": bootstrap},
        "sources": [source],
        "sinks": [{"topic": "copies"}],
        "driver": {"cpu": "100m", "memory": "1Gi"},
        "executors": {"instances": 1, "cpu": "100m", "memory": "1Gi"},
    }
    return {"kind": "StreamJob", "metadata": {"name": name}, "spec": made | spec}


@pytest.fixture(scope="module")
def kafka(namespace: Namespace) -> Iterator[Kafka]:
    with broker(namespace, JOB_IMAGE) as made:
        create_missing(made.outside, [TopicPlan("pageviews", 1), TopicPlan("copies", 1)])
        writer = producer(made.outside)
        writer.produce("pageviews", value=b'{"user": "u", "url": "/"}')
        assert writer.flush(30) == 0
        yield made


@pytest.fixture(scope="module")
def resources(namespace: Namespace, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resources]:
    install_crds()
    log: Path = tmp_path_factory.mktemp("operator") / "log"
    with operator(namespace.name, log):
        yield Resources(namespace)
    Resources(namespace).release()
    print(log.read_text()[-4000:])


POSTGRES = {"postgres": {"secret": {"name": "no-such-secret"}, "table": "t", "key": ["user"]}}
BEFORE_IT_RUNS: list[tuple[str, dict[str, Any], str, str]] = [
    ("no-image", {"driver": {"image": "millrace/nobody:0", "cpu": "100m"}}, "ImageCannotBePulled", "millrace/nobody:0"),
    ("too-large", {"driver": {"memory": "900Gi"}}, "Unschedulable", "Insufficient memory"),
    ("no-secret", {"sinks": [POSTGRES]}, "PodCannotStart", "no-such-secret"),
    (
        "no-volume",
        {"checkpoint": {"volumeClaim": {"size": "1Gi", "storageClass": "no-such-class"}}},
        "VolumeNotBound",
        "PersistentVolumeClaim",
    ),
]


@pytest.mark.parametrize(("name", "spec", "reason", "words"), BEFORE_IT_RUNS, ids=[one[0] for one in BEFORE_IT_RUNS])
def test_what_keeps_a_driver_from_starting(
    resources: Resources, kafka: Kafka, name: str, spec: dict[str, Any], reason: str, words: str
) -> None:
    resources.create(job(name, kafka.inside, **spec))
    message = resources.wait_for_condition(name, "Stalled", "True", reason, 120)
    assert words in message
    assert resources.state(name) == "Stalled"
    resources.delete("StreamJob", name)
    resources.wait(f"{name} to go", lambda: not resources.exists("StreamJob", name), 150)


def test_code_that_raises_ends_in_failed_with_its_last_words(resources: Resources, kafka: Kafka) -> None:
    step = {"sql": "SELECT user, raise_error('the till is empty') AS url FROM input"}
    restart = {"backoff": "1s", "maxFailures": 2}
    resources.create(job("raises", kafka.inside, transform=[step], restart=restart))
    resources.wait_for_state("raises", "Failed", 300)
    status, reason, message = resources.condition("StreamJob", "raises", "Stalled")
    assert (status, reason) == ("True", "UserCodeRaised")
    assert "the till is empty" in message
    resources.wait("the driver to be gone", lambda: resources.driver("raises") is None, 90)
    resources.delete("StreamJob", "raises")
    resources.wait("raises to go", lambda: not resources.exists("StreamJob", "raises"), 60)


def test_an_unreachable_broker_is_named(resources: Resources) -> None:
    resources.create(job("no-broker", "nowhere.invalid:9092"))
    resources.wait_for_condition("no-broker", "Stalled", "True", "BrokerUnreachable", 240)
    resources.delete("StreamJob", "no-broker")
    resources.wait("no-broker to go", lambda: not resources.exists("StreamJob", "no-broker"), 150)


def test_a_quota_is_named(resources: Resources, kafka: Kafka) -> None:
    body = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "1"}}}
    resources.core.create_namespaced_resource_quota(resources.name, body)
    resources.create(job("no-quota", kafka.inside))
    message = resources.wait_for_condition("no-quota", "Stalled", "True", "QuotaExceeded", 60)
    assert "exceeded quota" in message
    resources.core.delete_namespaced_resource_quota("none", resources.name)
    resources.delete("StreamJob", "no-quota")
