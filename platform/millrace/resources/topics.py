"""The Topic resource: a Kafka topic as people declare it."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from millrace.resources.fields import Model, Problem, Rule, declared
from millrace.resources.metadata import API_VERSION, Resource
from millrace.resources.sources import KafkaCluster
from millrace.resources.types import ByteSize, PositiveDuration, TopicName

_OWN_FIELD = {
    "retention.ms": "retention.time",
    "retention.bytes": "retention.bytes",
    "cleanup.policy": "cleanup",
}


class Retention(Model):
    """How long the topic keeps records."""

    time: PositiveDuration | None = declared(
        "Keep records for so long (duration). Default: the broker's own.", change="live", default=None
    )
    bytes: ByteSize | None = declared(
        "Keep so much of each partition (bytes). Default: no bound.", change="live", default=None
    )


class TopicSpec(Model):
    """What the topic should be."""

    cluster: KafkaCluster = declared("The Kafka cluster that the topic is in.", change="new-state", default={})
    name: TopicName | None = declared(
        "Name of the topic in Kafka. Default: the resource's own name. It cannot change.",
        change="new-state",
        default=None,
    )
    partitions: int = declared(
        "Number of partitions. It can grow, not shrink; new records of a key may then go to another partition.",
        change="live",
        default=1,
        ge=1,
        le=100_000,
    )
    replicas: int = declared(
        "Number of brokers that hold each partition. It cannot change.", change="new-state", default=1, ge=1, le=32767
    )
    retention: Retention = declared("How long records are kept.", change="live", default={})
    cleanup: Literal["delete", "compact", "compact,delete"] = declared(
        "What happens to old records: delete removes them; compact keeps the latest of each key.",
        change="live",
        default="delete",
    )
    config: Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=64)] = declared(
        "Further settings of the topic, by Kafka's own names; values are text.", change="live", default={}
    )
    deletion_policy: Literal["Retain", "Delete"] = declared(
        "What happens to the topic in Kafka when the resource is deleted.", change="live", default="Retain"
    )

    rules = tuple(
        Rule(
            at="config",
            says=f"must not contain {key}: it has a field of its own, {field}",
            holds=lambda spec, key=key: key not in spec.config,  # type: ignore[misc]
            cel=f"!('{key}' in self.config)",
        )
        for key, field in _OWN_FIELD.items()
    )
    server_rules = (
        {
            "rule": "self.partitions >= oldSelf.partitions",
            "message": "cannot shrink: Kafka cannot take partitions away; make a new topic and move the jobs to it",
            "fieldPath": ".partitions",
        },
        {
            "rule": "self.replicas == oldSelf.replicas",
            "message": "cannot change: this version does not move replicas between brokers; keep the old value",
            "fieldPath": ".replicas",
        },
        {
            "rule": "has(self.name) == has(oldSelf.name) && (!has(self.name) || self.name == oldSelf.name)",
            "message": "cannot change: it names the topic in Kafka; make a new Topic resource for another topic",
            "fieldPath": ".name",
        },
    )


class Topic(Resource):
    """A Kafka topic."""

    api_version: Literal["millrace.io/v1alpha1"] = declared("", change="new-state", default=API_VERSION)
    kind: Literal["Topic"] = declared("", change="new-state", default="Topic")
    spec: TopicSpec = declared("What the topic should be.", change="live", default={})

    @property
    def topic_name(self) -> str:
        """The topic's name in Kafka."""
        return self.spec.name or self.metadata.name

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if len(self.topic_name) > 249:
            yield Problem(("metadata", "name"), "is too long for a topic: Kafka allows 249 characters; set spec.name")
