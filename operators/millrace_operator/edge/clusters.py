"""The Kafka clusters in use: one broker handle each, calls off the event loop, one call at a time per cluster."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from confluent_kafka import KafkaException

from millrace import naming
from millrace.resources import StreamJob
from millrace_operator.edge.brokers import Broker, sentence
from millrace_operator.edge.cache import Key
from millrace_operator.streamjobs.state import TopicProblem

NAMES_SECONDS = 15.0  # how old a list of topics may be when jobs ask whether theirs are there
POSITION_SECONDS = 5.0  # a worker waits no longer for a broker that is away; the next look asks again
T = TypeVar("T")


class Clusters:
    def __init__(self, default_bootstrap: str, deadline: float) -> None:
        self._default, self._deadline = default_bootstrap, deadline
        self._brokers: dict[str, Broker] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._names: dict[str, tuple[float, frozenset[str] | str | None]] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._jobs: Callable[[Key], StreamJob | None] = lambda _: None

    def know_jobs(self, find: Callable[[Key], StreamJob | None]) -> None:
        self._jobs = find

    async def ask(self, bootstrap: str, question: Callable[[Broker], T]) -> T:
        """Put a question to a cluster; the answer, or what the question raises."""
        lock = self._locks.setdefault(bootstrap, asyncio.Lock())
        async with lock:
            broker = self._brokers.setdefault(bootstrap, Broker(bootstrap, self._deadline))
            return await asyncio.to_thread(question, broker)

    def cluster_id(self, bootstrap: str) -> str:
        """The cluster's own name for itself, or its address until it has told."""
        broker = self._brokers.get(bootstrap)
        return (broker.cluster_id if broker else None) or bootstrap

    async def position(self, key: Key) -> int | None:
        """Where a job's consumer group stands."""
        job = self._jobs(key)
        if job is None:
            return None
        group = naming.consumer_group(key.namespace, key.name)
        topics = sorted({source.topic for source in job.spec.sources})
        try:
            question = self.ask(self._bootstrap(job), lambda broker: broker.position(group, topics))
            return await asyncio.wait_for(question, POSITION_SECONDS)
        except (KafkaException, TimeoutError):
            return None

    def topic_problems(self, job: StreamJob) -> tuple[TopicProblem, ...] | None:
        """The topics of a job that are not usable, by the last look; None before the first. Never waits."""
        bootstrap = self._bootstrap(job)
        names = self._topic_names(bootstrap)
        if names is None:
            return None
        if isinstance(names, str):
            return (TopicProblem("", "BrokerUnreachable", f"No Kafka broker answers at {bootstrap} ({names})."),)
        return tuple(
            TopicProblem(topic, "TopicMissing", f"Topic {topic} is not there: make a Topic resource for it.")
            for topic in sorted(topics_of(job))
            if topic not in names
        )

    def _topic_names(self, bootstrap: str) -> frozenset[str] | str | None:
        at, names = self._names.get(bootstrap, (-NAMES_SECONDS, None))
        if time.monotonic() - at > NAMES_SECONDS and bootstrap not in self._looking:
            self._looking[bootstrap] = asyncio.create_task(self._look(bootstrap))
        return names

    async def _look(self, bootstrap: str) -> None:
        names: frozenset[str] | str
        try:
            names = await self.ask(bootstrap, lambda broker: broker.names())
        except (KafkaException, TimeoutError) as error:
            names = sentence(error)
        finally:
            self._looking.pop(bootstrap, None)
        self._names[bootstrap] = (time.monotonic(), names)

    def _bootstrap(self, job: StreamJob) -> str:
        return job.spec.kafka.bootstrap_servers or self._default

    def bootstrap_of(self, job: StreamJob) -> str:
        return self._bootstrap(job)


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
