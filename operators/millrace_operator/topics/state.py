"""Topics as declared and as seen, as frozen values. Parsed once; it asks nobody."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from millrace.resources import Topic
from millrace.resources.metadata import API_GROUP
from millrace.resources.reading import SpecError, parse_object
from millrace.resources.sources import KafkaCluster
from millrace_operator.actions import Manifest, Ref
from millrace_operator.desired.target import PAUSE

FORCE = f"{API_GROUP}/force-retention"
"""Annotation: 'true' lets a shorter retention delete what jobs have not read yet."""
FINALIZER = f"{API_GROUP}/topic"

RETENTION_TIME = "retention.ms"
RETENTION_BYTES = "retention.bytes"
CLEANUP = "cleanup.policy"


@dataclass(frozen=True)
class Cluster:
    """A Kafka cluster as a spec names it."""

    bootstrap: str
    secret: str | None = None
    namespace: str = ""
    """Of the Secret; empty where there is none, so that all namespaces share one connection."""


@dataclass(frozen=True)
class Declared:
    """One Topic resource."""

    ref: Ref
    uid: str
    generation: int
    created: str
    cluster: Cluster
    topic: str
    partitions: int = 1
    replicas: int = 1
    config: Mapping[str, str] = field(default_factory=dict)
    delete_with_resource: bool = False
    deleting: bool = False
    held: bool = False
    forced: bool = False
    paused: bool = False
    invalid: str | None = None
    status: Mapping[str, Any] = field(default_factory=dict)

    @property
    def age(self) -> tuple[str, str, str]:
        """The smaller, the older; names decide between twins."""
        return self.created, self.ref.namespace, self.ref.name


@dataclass(frozen=True)
class Seen:
    """A topic in Kafka. `config` holds what was set for this topic, `defaults` what holds without."""

    partitions: int
    replicas: int
    config: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    def value(self, key: str) -> str | None:
        return self.config.get(key, self.defaults.get(key))


@dataclass(frozen=True)
class Reader:
    """A job that reads a topic, and how far it is behind."""

    job: str
    records: int
    seconds: float
    """Age of the oldest record that it has not read."""


@dataclass(frozen=True)
class Kafka:
    """What was seen of a cluster. `problem` says why nothing was, `reason` the same in one word."""

    topics: Mapping[str, Seen] = field(default_factory=dict)
    problem: str | None = None
    reason: str = "BrokerUnreachable"


def parse_topic(body: Mapping[str, Any], default_bootstrap: str) -> Declared:
    meta = body["metadata"]
    annotations = meta.get("annotations") or {}
    common: dict[str, Any] = {
        "ref": Ref(body["apiVersion"], body["kind"], meta["namespace"], meta["name"]),
        "uid": meta["uid"],
        "generation": meta.get("generation", 0),
        "created": meta.get("creationTimestamp", ""),
        "deleting": meta.get("deletionTimestamp") is not None,
        "held": FINALIZER in (meta.get("finalizers") or ()),
        "forced": annotations.get(FORCE) == "true",
        "paused": annotations.get(PAUSE) == "true",
        "status": body.get("status") or {},
    }
    try:
        topic = _parsed(body)
    except SpecError as error:
        reason = "; ".join(line.split(": ", 1)[-1] for line in error.lines)
        return Declared(cluster=Cluster(default_bootstrap), topic=meta["name"], invalid=reason, **common)
    return Declared(
        cluster=cluster_of(topic.spec.cluster, topic.metadata.namespace, default_bootstrap),
        topic=topic.topic_name,
        partitions=topic.spec.partitions,
        replicas=topic.spec.replicas,
        config=config_of(topic),
        delete_with_resource=topic.spec.deletion_policy == "Delete",
        **common,
    )


def _parsed(body: Mapping[str, Any]) -> Topic:
    named = {"name": body["metadata"]["name"], "namespace": body["metadata"]["namespace"]}
    topic = parse_object(
        {**{key: body[key] for key in ("apiVersion", "kind")}, "metadata": named, "spec": body["spec"]}
    )
    if not isinstance(topic, Topic):
        raise TypeError(f"{named['name']} is no Topic")
    return topic


def cluster_of(declared: KafkaCluster, namespace: str, default_bootstrap: str) -> Cluster:
    """The cluster that a spec of the namespace names."""
    bootstrap = declared.bootstrap_servers or default_bootstrap
    if declared.auth_secret is None:
        return Cluster(bootstrap)
    return Cluster(bootstrap, declared.auth_secret.name, namespace)


def config_of(topic: Topic) -> dict[str, str]:
    """The settings that the spec asks for, by Kafka's names."""
    spec = topic.spec
    config = {CLEANUP: spec.cleanup, **spec.config}
    if spec.retention.time is not None:
        config[RETENTION_TIME] = str(spec.retention.time // timedelta(milliseconds=1))
    if spec.retention.bytes is not None:
        config[RETENTION_BYTES] = str(spec.retention.bytes)
    return config


def status_of(declared: Declared) -> Manifest:
    return dict(declared.status)
