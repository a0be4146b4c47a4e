"""Making the topics that are not there yet: one look at the cluster, one request for all of them.

Existing topics are never touched here. Growing and reconfiguring them is the operator's work.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata
from confluent_kafka.cimpl import NewTopic

from millrace.errors import UserError
from millrace.kafka.clients import REQUEST_SECONDS, admin

# With the broker's own time in each record, a producer with a wrong clock cannot distort lag in seconds or retention.
TIMESTAMP_TYPE = "message.timestamp.type"
BROKER_TIME = "LogAppendTime"


@dataclass(frozen=True)
class TopicPlan:
    """A topic as it should be made."""

    name: str
    partitions: int = 4
    replicas: int = 1
    config: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class ClusterView:
    """What one look at the cluster showed."""

    topics: frozenset[str]
    brokers: int
    identity: str
    """The cluster's own id, which tells it from every other cluster."""


def look(bootstrap: str) -> ClusterView:
    """Which topics there are, how many brokers, and which cluster it is."""
    seen = _listed(admin(bootstrap), bootstrap)
    return ClusterView(frozenset(seen.topics), len(seen.brokers), str(seen.cluster_id))


def create_missing(bootstrap: str, plans: Sequence[TopicPlan]) -> list[str]:
    """Make the topics that are missing and return their names. Made by someone else meanwhile is fine too."""
    client = admin(bootstrap)
    there = _listed(client, bootstrap).topics
    missing = [plan for plan in plans if plan.name not in there]
    if not missing:
        return []
    futures = client.create_topics([_new_topic(plan) for plan in missing], operation_timeout=REQUEST_SECONDS)
    mistakes = [sentence for name, future in futures.items() if (sentence := _mistake(name, future.exception()))]
    if mistakes:
        raise UserError("\n".join(mistakes))
    return [plan.name for plan in missing]


def fit_to_brokers(plans: Iterable[TopicPlan], brokers: int) -> list[TopicPlan]:
    """The same topics with no more replicas than there are brokers, for trying a production spec on one node."""
    return [_fitted(plan, brokers) for plan in plans]


def _fitted(plan: TopicPlan, brokers: int) -> TopicPlan:
    replicas = min(plan.replicas, brokers)
    config = dict(plan.config)
    if int(config.get("min.insync.replicas", 1)) > replicas:
        config["min.insync.replicas"] = str(replicas)
    return replace(plan, replicas=replicas, config=MappingProxyType(config))


def _new_topic(plan: TopicPlan) -> NewTopic:
    config = {TIMESTAMP_TYPE: BROKER_TIME} | dict(plan.config)
    return NewTopic(plan.name, num_partitions=plan.partitions, replication_factor=plan.replicas, config=config)


def _listed(client: AdminClient, bootstrap: str) -> ClusterMetadata:
    try:
        return client.list_topics(timeout=REQUEST_SECONDS)
    except KafkaException as error:
        raise UserError(
            f"No Kafka broker answers at {bootstrap} ({error.args[0].str()}): check the address and that it is up."
        ) from error


def _mistake(name: str, error: BaseException | None) -> str | None:
    if error is None:
        return None
    cause = error.args[0] if error.args else None
    if isinstance(cause, KafkaError):
        return (
            None if cause.code() == KafkaError.TOPIC_ALREADY_EXISTS else f"Topic {name} cannot be made: {cause.str()}"
        )
    return f"Topic {name} cannot be made: {error}"
