"""The Kafka clusters in use: one broker handle for each address and Secret, calls off the event loop, one at a time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from confluent_kafka import KafkaException

from millrace import naming
from millrace.kafka.security import Security
from millrace.resources import StreamJob
from millrace_operator.edge.brokers import Broker, ClusterError
from millrace_operator.edge.cache import Key
from millrace_operator.streamjobs.state import TopicProblem
from millrace_operator.topics.state import Cluster, cluster_of

NAMES_SECONDS = 15.0  # how old a list of topics may be when jobs ask whether theirs are there
POSITION_SECONDS = 5.0  # a worker waits no longer for a broker that is away; the next look asks again
T = TypeVar("T")


async def nobody(_: Cluster) -> Security | None:
    """For where no Secret can be had."""
    return None


class Clusters:
    def __init__(
        self,
        default_bootstrap: str,
        deadline: float,
        security: Callable[[Cluster], Awaitable[Security | None]] = nobody,
    ) -> None:
        self._default, self._deadline, self._security = default_bootstrap, deadline, security
        self._brokers: dict[Cluster, Broker] = {}
        self._locks: dict[Cluster, asyncio.Lock] = {}
        self._ids: dict[str, str] = {}
        self._names: dict[Cluster, tuple[float, frozenset[str] | TopicProblem | None]] = {}
        self._looking: dict[Cluster, asyncio.Task[None]] = {}
        self._jobs: Callable[[Key], StreamJob | None] = lambda _: None

    def know_jobs(self, find: Callable[[Key], StreamJob | None]) -> None:
        self._jobs = find

    async def ask(self, cluster: Cluster, question: Callable[[Broker], T]) -> T:
        """Put a question to a cluster; the answer, or what the question raises. ClusterError: it cannot be asked."""
        lock = self._locks.setdefault(cluster, asyncio.Lock())
        async with lock:
            broker = await self._broker(cluster)
            try:
                return await asyncio.to_thread(question, broker)
            finally:
                if broker.cluster_id is not None:
                    self._ids[cluster.bootstrap] = broker.cluster_id

    async def _broker(self, cluster: Cluster) -> Broker:
        """A changed Secret means new connections."""
        security, known = await self._security(cluster), self._brokers.get(cluster)
        if known is None or known.security != security:
            known = self._brokers[cluster] = Broker(cluster.bootstrap, self._deadline, security)
        return known

    def cluster_id(self, cluster: Cluster) -> str:
        """The cluster's own name for itself, whoever it was told; its address until then."""
        return self._ids.get(cluster.bootstrap, cluster.bootstrap)

    async def position(self, key: Key) -> int | None:
        """Where a job's consumer group stands."""
        job = self._jobs(key)
        if job is None:
            return None
        group = naming.consumer_group(key.namespace, key.name)
        topics = sorted({source.topic for source in job.spec.sources})
        try:
            question = self.ask(self.cluster_of(job), lambda broker: broker.position(group, topics))
            return await asyncio.wait_for(question, POSITION_SECONDS)
        except (KafkaException, TimeoutError, ClusterError):
            return None

    def topic_problems(self, job: StreamJob) -> tuple[TopicProblem, ...] | None:
        """The topics of a job that are not usable, by the last look; None before the first. Never waits."""
        names = self._topic_names(self.cluster_of(job))
        if names is None:
            return None
        if isinstance(names, TopicProblem):
            return (names,)
        return tuple(
            TopicProblem(topic, "TopicMissing", f"Topic {topic} is not there: make a Topic resource for it.")
            for topic in sorted(topics_of(job))
            if topic not in names
        )

    def _topic_names(self, cluster: Cluster) -> frozenset[str] | TopicProblem | None:
        at, names = self._names.get(cluster, (-NAMES_SECONDS, None))
        if time.monotonic() - at > NAMES_SECONDS and cluster not in self._looking:
            self._looking[cluster] = asyncio.create_task(self._look(cluster))
        return names

    async def _look(self, cluster: Cluster) -> None:
        names: frozenset[str] | TopicProblem
        try:
            names = await self.ask(cluster, lambda broker: broker.names())
        except ClusterError as error:
            names = TopicProblem("", error.reason, str(error))
        finally:
            self._looking.pop(cluster, None)
        self._names[cluster] = (time.monotonic(), names)

    def cluster_of(self, job: StreamJob) -> Cluster:
        return cluster_of(job.spec.kafka, job.metadata.namespace, self._default)


def topics_of(job: StreamJob) -> set[str]:
    spec = job.spec
    found = {source.topic for source in spec.sources} | {sink.topic for sink in spec.sinks if sink.topic}
    found |= {spec.malformed.topic} if spec.malformed is not None else set()
    return found | ({spec.stragglers.topic} if spec.stragglers.topic is not None else set())


def groups_reading(topic: str, jobs: Mapping[Key, StreamJob]) -> dict[str, str]:
    """Job → its consumer group, for the jobs that read the topic."""
    return {
        f"{key.namespace}/{key.name}": naming.consumer_group(key.namespace, key.name)
        for key, job in jobs.items()
        if any(source.topic == topic for source in job.spec.sources)
    }
