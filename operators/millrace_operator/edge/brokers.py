"""Kafka clusters as the operator needs them: look at topics, change them, see where groups stand. In batches.

All calls block; `asyncio.to_thread` keeps them off the event loop. One instance per cluster.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
)

from millrace.kafka.clients import admin
from millrace.kafka.refusals import refusal
from millrace.kafka.security import Security
from millrace_operator.edge import groups
from millrace_operator.topics.plan import BROKER_TIME, Change, TopicsPlan
from millrace_operator.topics.state import Declared, Kafka, Reader, Seen

CHUNK = 500  # topics per request: few requests, and none so large that a broker times out
DONE = ("TOPIC_ALREADY_EXISTS", "already has")  # said when the look before was not up to date
T = TypeVar("T")
Errors = dict[str, str]


class ClusterError(Exception):
    """A cluster cannot be asked. `reason` is for conditions; the text is a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Broker:
    """One cluster, asked by one user. Not for two threads at once."""

    def __init__(self, bootstrap: str, deadline: float, security: Security | None = None) -> None:
        self._bootstrap = bootstrap
        self._deadline = deadline
        self.security = security
        self._admin: AdminClient | None = None
        self.cluster_id: str | None = None

    def names(self) -> frozenset[str]:
        """All topics of the cluster, in one request. Raises ClusterError when it does not answer."""
        try:
            return frozenset(self._listed().topics)
        except (KafkaException, TimeoutError) as error:
            raise self._silence(error) from None

    def look(self, wanted: Iterable[str]) -> Kafka:
        """The wanted topics that are there: one request for all names, then their settings in chunks."""
        try:
            listed = self._listed().topics
            there = [name for name in wanted if name in listed]
            configs = dict(pair for chunk in _chunks(there) for pair in self._configs(chunk))
        except (KafkaException, TimeoutError) as error:
            silence = self._silence(error)
            return Kafka(problem=str(silence), reason=silence.reason)
        return Kafka({name: _seen(listed[name], configs[name]) for name in there if name in configs})

    def carry_out(self, plan: TopicsPlan) -> Errors:
        """Do it all; what the broker refused comes back by topic."""
        errors: Errors = {}
        for create in _chunks(plan.create):
            made = self._client().create_topics([_new_topic(one) for one in create], operation_timeout=self._deadline)
            errors |= self._collect(made)
        for grow in _chunks(plan.grow):
            grown = self._client().create_partitions([NewPartitions(name, count) for name, count in grow])
            errors |= self._collect(grown)
        for alter in _chunks(plan.alter):
            done = self._client().incremental_alter_configs([_alteration(one) for one in alter])
            errors |= self._collect({resource.name: future for resource, future in done.items()})
        for delete in _chunks(plan.delete):
            errors |= self._collect(self._client().delete_topics(list(delete), operation_timeout=self._deadline))
        return errors

    def readers(self, topic: str, jobs: Mapping[str, str]) -> tuple[Reader, ...]:
        """How far each job (by its group) is behind in the topic."""
        door = (self._bootstrap, self.security)
        return tuple(groups.reader(*door, job, group, topic, self._deadline) for job, group in jobs.items())

    def position(self, group: str, topics: Sequence[str]) -> int | None:
        """A number that grows when the group's position moves; None while it has none."""
        return groups.position(self._bootstrap, self.security, group, topics, self._deadline)

    def _silence(self, error: BaseException) -> ClusterError:
        """Why nobody answers. A client that is refused only says that; the broker itself says more."""
        why = refusal(self._bootstrap, self.security, self._deadline)
        if why is not None:
            said = f"The brokers at {self._bootstrap} do not let us in: {why}. Check the Secret; trying again."
            return ClusterError("BrokerRefused", said)
        return ClusterError(
            "BrokerUnreachable", f"No Kafka broker answers at {self._bootstrap} ({sentence(error)}); trying again."
        )

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._admin = admin(self._bootstrap, self.security)
        return self._admin

    def _listed(self) -> Any:
        listed = self._client().list_topics(timeout=self._deadline)
        self.cluster_id = listed.cluster_id
        return listed

    def _configs(self, names: Sequence[str]) -> Iterator[tuple[str, Mapping[str, ConfigEntry]]]:
        asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        answers = self._client().describe_configs(asked, request_timeout=self._deadline)
        for resource, future in answers.items():
            try:
                yield resource.name, future.result(timeout=self._deadline)
            except KafkaException as error:
                if "UNKNOWN_TOPIC" not in str(error):  # deleted between the two questions
                    raise

    def _collect(self, futures: Mapping[str, Future[Any]]) -> Errors:
        errors: Errors = {}
        deadline = time.monotonic() + 2 * self._deadline
        for name, future in futures.items():
            try:
                future.result(timeout=max(0.1, deadline - time.monotonic()))
            except (KafkaException, TimeoutError) as error:
                if not any(done in str(error) for done in DONE):
                    errors[name] = sentence(error)
        return errors


def sentence(error: BaseException) -> str:
    """What the broker or its client said, without the wrapping."""
    cause = error.args[0] if error.args else None
    return str(cause.str()) if isinstance(cause, KafkaError) else (str(error) or type(error).__name__)


def _new_topic(one: Declared) -> NewTopic:
    config = {**BROKER_TIME, **one.config}
    return NewTopic(one.topic, num_partitions=one.partitions, replication_factor=one.replicas, config=config)


def _alteration(change: Change) -> ConfigResource:
    put = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in change.put.items()]
    reset = [ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in change.reset]
    return ConfigResource(ConfigResource.Type.TOPIC, change.topic, incremental_configs=put + reset)


def _seen(metadata: Any, config: Mapping[str, ConfigEntry]) -> Seen:
    replicas = max((len(one.replicas) for one in metadata.partitions.values()), default=0)
    own = {key: str(one.value) for key, one in config.items() if _is_own(one)}
    defaults = {key: value for key, one in config.items() if (value := _default(one)) is not None}
    return Seen(len(metadata.partitions), replicas, own, defaults)


def _is_own(entry: ConfigEntry) -> bool:
    """Whether it was set for this topic. The client gives the source as a number, whatever its types say."""
    source: Any = entry.source
    return int(getattr(source, "value", source)) == ConfigSource.DYNAMIC_TOPIC_CONFIG.value


def _default(entry: ConfigEntry) -> str | None:
    """What holds without the topic's own setting: the next of its synonyms, where the broker tells of one."""
    if not _is_own(entry):
        return str(entry.value)
    others = [one for one in entry.synonyms.values() if not _is_own(one)]
    return str(others[0].value) if others else None


def _chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))
