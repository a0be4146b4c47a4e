"""The operator's topics against a real broker, without a cluster: the API server is a small one in memory."""

import asyncio
import base64
import socket
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from millrace import naming
from millrace.kafka.clients import admin, consumer, producer
from millrace.kafka.embedded import EmbeddedKafka
from millrace.resources import StreamJob
from millrace.resources.reading import parse_object
from millrace_operator.edge.apply import Writer
from millrace_operator.edge.cache import Key
from millrace_operator.edge.clusters import Clusters
from millrace_operator.edge.counts import Counts
from millrace_operator.edge.secrets import Secrets
from millrace_operator.edge.topics import TopicController
from millrace_operator.settings import JobDefaults, Settings
from tests.unit.operator.memory import MemoryApi
from tests.unit.operator.worlds import spec

pytestmark = pytest.mark.integration

NAMESPACE = "shop"


class World:
    """A Topic controller, a real broker, and the resources in memory."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap, self.api = bootstrap, MemoryApi()
        self.jobs: dict[Key, StreamJob] = {}
        self._admin = admin(bootstrap)
        self._count = 0
        settings = Settings(jobs=JobDefaults(bootstrap_servers=bootstrap))
        clusters = Clusters(bootstrap, 5.0, Secrets(self.api).security)
        writer = Writer(self.api, lambda: True)
        self.controller = TopicController(clusters, writer, lambda: self.jobs, settings, Counts())

    def declare(self, resource: str, **fields: Any) -> None:
        """Make a resource, or change it; also `deleting`, `annotations` and `finalizers` of its metadata."""
        self._count += 1
        known = self.api.objects.get(f"/apis/millrace.io/v1alpha1/namespaces/{NAMESPACE}/topics/{resource}", {})
        before = known.get("metadata", {})
        meta = {
            "name": resource,
            "namespace": NAMESPACE,
            "uid": f"uid-{resource}",
            "creationTimestamp": known.get("metadata", {}).get(
                "creationTimestamp", f"2026-01-01T00:00:{self._count:02}Z"
            ),
            "annotations": fields.pop("annotations", {}),
            "finalizers": before.get("finalizers", []),
            **({"deletionTimestamp": "2026-02-01T00:00:00Z"} if fields.pop("deleting", False) else {}),
        }
        body = {"apiVersion": "millrace.io/v1alpha1", "kind": "Topic", "metadata": meta, "spec": fields}
        stored = self.api._store({**body, "status": known.get("status", {})})
        self.controller.put(stored)

    async def look(self) -> None:
        await self.controller.look_at([Key(one.ref.namespace, one.ref.name) for one in self.controller.declared()])

    def condition(self, name: str) -> dict[str, str]:
        body = self.api.objects[f"/apis/millrace.io/v1alpha1/namespaces/{NAMESPACE}/topics/{name}"]
        (condition,) = body["status"]["conditions"]
        return dict(condition)

    def ready(self, name: str) -> tuple[str, str]:
        condition = self.condition(name)
        return condition["status"], condition["reason"]

    def put_secret(self, name: str, values: Mapping[str, str]) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        head = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}}
        self.api._store({**head, "data": data})

    def partitions(self, topic: str) -> int:
        found = self._admin.list_topics(timeout=10).topics.get(topic)
        return len(found.partitions) if found else 0

    def setting(self, topic: str, key: str) -> str | None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        value: str | None = self._admin.describe_configs([resource])[resource].result(timeout=10)[key].value
        return value

    def drift(self, topic: str, key: str, value: str) -> None:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(timeout=10)


def run(bootstrap: str, main: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def inside() -> None:
        await main(World(bootstrap))

    asyncio.run(inside())


def a_name() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


def test_a_topic_is_made_grown_reconfigured_and_drift_is_put_back(broker: str) -> None:
    name = a_name()

    async def main(world: World) -> None:
        world.declare(name, partitions=2, retention={"time": "1h"}, config={"max.message.bytes": "2000000"})
        await world.look()
        assert world.ready(name) == ("True", "AsDeclared")
        assert world.partitions(name) == 2
        assert world.setting(name, "retention.ms") == "3600000"
        assert world.setting(name, "message.timestamp.type") == "LogAppendTime"

        world.declare(name, partitions=5, retention={"time": "2h"}, cleanup="compact,delete")
        await world.look()
        assert world.ready(name) == ("True", "AsDeclared")
        assert (world.partitions(name), world.setting(name, "retention.ms")) == (5, "7200000")
        assert world.setting(name, "max.message.bytes") == "1048588"  # taken out of the spec: the broker's own again

        world.drift(name, "retention.ms", "1")
        world.drift(name, "segment.bytes", "2000000")
        await world.look()
        assert world.setting(name, "retention.ms") == "7200000"
        assert world.setting(name, "segment.bytes") == "1073741824"

    run(broker, main)


def test_nothing_to_do_writes_nothing(broker: str) -> None:
    name = a_name()

    async def main(world: World) -> None:
        world.declare(name, partitions=1)
        await world.look()
        before = world.api.applied
        await world.look()
        assert world.api.applied == before

    run(broker, main)


def test_a_smaller_number_of_partitions_is_refused(broker: str) -> None:
    name = a_name()

    async def main(world: World) -> None:
        world.declare(name, partitions=3)
        await world.look()
        world.declare(name, partitions=1)
        await world.look()
        assert world.ready(name) == ("False", "PartitionsCannotShrink")
        assert world.partitions(name) == 3

    run(broker, main)


def test_two_resources_for_one_topic(broker: str) -> None:
    topic, old, young = a_name(), a_name(), a_name()

    async def main(world: World) -> None:
        world.declare(old, name=topic, partitions=2)
        world.declare(young, name=topic, partitions=4)
        await world.look()
        assert (world.ready(old), world.ready(young)) == (("True", "AsDeclared"), ("False", "OwnedByAnother"))
        assert world.partitions(topic) == 2
        world.controller.drop(Key(NAMESPACE, old))
        await world.look()
        assert world.ready(young) == ("True", "AsDeclared")
        assert world.partitions(topic) == 4

    run(broker, main)


def test_deletion_keeps_the_topic_unless_the_spec_says_otherwise(broker: str) -> None:
    kept, gone = a_name(), a_name()

    async def main(world: World) -> None:
        world.declare(kept, partitions=1)
        world.declare(gone, partitions=1, deletionPolicy="Delete")
        await world.look()
        world.declare(kept, partitions=1, deleting=True)
        world.declare(gone, partitions=1, deletionPolicy="Delete", deleting=True)
        await world.look()
        assert (world.partitions(kept), world.partitions(gone)) == (1, 0)
        path = f"/apis/millrace.io/v1alpha1/namespaces/{NAMESPACE}/topics/{gone}"
        assert world.api.objects[path]["metadata"]["finalizers"] == []

    run(broker, main)


def test_what_the_broker_refuses_is_told_in_its_words(broker: str) -> None:
    many, wrong = a_name(), a_name()

    async def main(world: World) -> None:
        world.declare(many, partitions=1, replicas=3)
        world.declare(wrong, partitions=1, config={"no.such.setting": "1"})
        await world.look()
        assert world.ready(many) == ("False", "BrokerRefused")
        assert world.ready(wrong) == ("False", "BrokerRefused")
        before = world.api.applied
        await world.look()
        assert world.api.applied == before  # tried again, and not told again
        world.declare(wrong, partitions=1)
        await world.look()
        assert world.ready(wrong) == ("True", "AsDeclared")

    run(broker, main)


def write_and_wait(bootstrap: str, topic: str, seconds: float) -> None:
    writer = producer(bootstrap)
    writer.produce(topic, value=b"{}")
    assert writer.flush(10) == 0
    time.sleep(seconds)  # the record must get older than the retention that is asked for; nothing else can make it so


def commit(bootstrap: str, group: str, place: TopicPartition, seconds: float = 30.0) -> None:
    """Commit a position, also on a broker that has only just made its offsets topic."""
    reader, deadline = consumer(bootstrap, group), time.monotonic() + seconds
    while True:
        try:
            reader.commit(offsets=[place], asynchronous=False)
        except KafkaException:
            assert time.monotonic() < deadline
            continue
        return reader.close()


def test_a_shorter_retention_waits_for_the_job_that_has_not_read(broker: str) -> None:
    name = a_name()
    source = {**spec()["sources"][0], "topic": name}

    async def main(world: World) -> None:
        world.declare(name, partitions=1, retention={"time": "1h"})
        await world.look()
        write_and_wait(broker, name, 1.1)
        body = {"apiVersion": "millrace.io/v1alpha1", "kind": "StreamJob", "metadata": {"name": "counts"}}
        job = parse_object({**body, "spec": spec(sources=[source])})
        assert isinstance(job, StreamJob)
        world.jobs[Key(NAMESPACE, "counts")] = job

        world.declare(name, partitions=1, retention={"time": "1s"})
        await world.look()
        assert world.ready(name) == ("False", "UnreadRecords")
        assert world.setting(name, "retention.ms") == "3600000"

        commit(broker, naming.consumer_group(NAMESPACE, "counts"), TopicPartition(name, 0, 1))
        await world.look()
        assert world.ready(name) == ("True", "AsDeclared")
        assert world.setting(name, "retention.ms") == "1000"

    run(broker, main)


def test_the_annotation_forces_a_shorter_retention(broker: str) -> None:
    name = a_name()
    source = {**spec()["sources"][0], "topic": name}

    async def main(world: World) -> None:
        world.declare(name, partitions=1, retention={"time": "1h"})
        await world.look()
        write_and_wait(broker, name, 1.1)
        body = {"apiVersion": "millrace.io/v1alpha1", "kind": "StreamJob", "metadata": {"name": "counts"}}
        job = parse_object({**body, "spec": spec(sources=[source])})
        assert isinstance(job, StreamJob)
        world.jobs[Key(NAMESPACE, "counts")] = job
        world.declare(name, retention={"time": "1s"}, annotations={"millrace.io/force-retention": "true"})
        await world.look()
        assert world.setting(name, "retention.ms") == "1000"

    run(broker, main)


def test_an_unreachable_broker_is_told_and_forgotten_when_it_is_back(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    name = a_name()

    async def main(world: World) -> None:
        world.declare(name, partitions=1)
        await world.look()
        assert world.ready(name) == ("False", "BrokerUnreachable")
        with EmbeddedKafka(tmp_path, port=port):
            deadline = time.monotonic() + 30
            while world.ready(name) != ("True", "AsDeclared"):
                assert time.monotonic() < deadline
                await world.look()

    run(f"127.0.0.1:{port}", main)


def test_hundreds_of_topics_take_few_requests_and_little_time(broker: str) -> None:
    prefix = a_name()

    async def main(world: World) -> None:
        for number in range(300):
            world.declare(f"{prefix}-{number}", partitions=1, retention={"time": "1h"})
        started = time.monotonic()
        await world.look()
        assert all(world.ready(f"{prefix}-{number}") == ("True", "AsDeclared") for number in range(300))
        assert time.monotonic() - started < 60
        before = world.api.applied
        await world.look()
        assert world.api.applied == before

    run(broker, main)
