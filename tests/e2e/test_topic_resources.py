"""Topics on a real cluster with a real broker: made, grown, put back, refused, kept and deleted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from kubernetes import client

from millrace.kafka.clients import admin
from tests.e2e.kafka import Kafka, broker
from tests.e2e.kube import Namespace
from tests.e2e.operating import JOB_IMAGE, Resources, install_crds, operator

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def kafka(namespace: Namespace) -> Iterator[Kafka]:
    with broker(namespace, JOB_IMAGE) as made:
        yield made


@pytest.fixture(scope="module")
def resources(namespace: Namespace, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resources]:
    install_crds()
    log: Path = tmp_path_factory.mktemp("operator") / "log"
    with operator(namespace.name, log, "--bootstrap", kafka.outside):
        yield Resources(namespace)
    Resources(namespace).release()
    print(log.read_text()[-4000:])


def make(resources: Resources, resource: str, **spec: Any) -> None:
    resources.create({"kind": "Topic", "metadata": {"name": resource}, "spec": spec})


def wait_ready(resources: Resources, name: str, reason: str = "AsDeclared", seconds: float = 30) -> float:
    wanted = ("True" if reason == "AsDeclared" else "False", reason)
    generation = resources.get("Topic", name)["metadata"]["generation"]

    def there() -> bool:
        seen = resources.get("Topic", name).get("status", {}).get("observedGeneration")
        return seen == generation and resources.condition("Topic", name, "Ready")[:2] == wanted

    return resources.wait(f"topic {name} {reason}", there, seconds)


def partitions(kafka: Kafka, topic: str) -> int:
    found = admin(kafka.outside).list_topics(timeout=10).topics.get(topic)
    return len(found.partitions) if found else 0


def test_a_topic_is_made_and_grown(resources: Resources, kafka: Kafka) -> None:
    make(resources, "orders", partitions=2, retention={"time": "7d"})
    wait_ready(resources, "orders")
    assert partitions(kafka, "orders") == 2
    resources.edit("Topic", "orders", partitions=4)
    wait_ready(resources, "orders")
    assert partitions(kafka, "orders") == 4
    assert resources.get("Topic", "orders")["status"]["partitions"] == 4


def test_the_api_server_itself_refuses_to_shrink(resources: Resources) -> None:
    with pytest.raises(client.ApiException, match="cannot shrink"):
        resources.edit("Topic", "orders", partitions=1)


def test_drift_is_put_back(resources: Resources, kafka: Kafka) -> None:
    entry = ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[entry])
    asking = admin(kafka.outside)
    asking.incremental_alter_configs([changed])[changed].result(timeout=10)

    def put_back() -> bool:
        asked = ConfigResource(ConfigResource.Type.TOPIC, "orders")
        return bool(asking.describe_configs([asked])[asked].result(timeout=10)["retention.ms"].value == "604800000")

    resources.wait("the operator's next look", put_back, 90)


def test_the_older_of_two_resources_owns_the_topic(resources: Resources) -> None:
    make(resources, "orders-too", name="orders", partitions=9)
    wait_ready(resources, "orders-too", "OwnedByAnother")


def test_deletion_keeps_or_deletes_as_declared(resources: Resources, kafka: Kafka) -> None:
    make(resources, "kept", partitions=1)
    make(resources, "gone", partitions=1, deletionPolicy="Delete")
    for name in ("kept", "gone"):
        wait_ready(resources, name)
        resources.wait(f"the finalizers of {name}", lambda name=name: held(resources, name) == (name == "gone"), 20)  # type: ignore[misc]
        resources.delete("Topic", name)
        resources.wait(f"{name} to go", lambda name=name: not resources.exists("Topic", name), 30)  # type: ignore[misc]
    assert (partitions(kafka, "kept"), partitions(kafka, "gone")) == (1, 0)


def held(resources: Resources, name: str) -> bool:
    return "millrace.io/topic" in (resources.get("Topic", name)["metadata"].get("finalizers") or [])


def test_what_the_broker_refuses_is_told(resources: Resources) -> None:
    make(resources, "wide", partitions=1, replicas=3)
    wait_ready(resources, "wide", "BrokerRefused")
    assert "eplication" in resources.condition("Topic", "wide", "Ready")[2]
