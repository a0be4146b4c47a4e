"""Topics, all of a cluster at once: observe, plan, apply. Changes close in time go to the broker together."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from confluent_kafka import KafkaException

from millrace.resources import StreamJob
from millrace_operator.edge.api import ApiError, UnreachableError
from millrace_operator.edge.apply import NotLeaderError, Writer
from millrace_operator.edge.brokers import ClusterError, Errors
from millrace_operator.edge.cache import Body, Key, key_of, version_of
from millrace_operator.edge.clusters import Clusters, groups_reading
from millrace_operator.edge.counts import Counts
from millrace_operator.settings import Settings
from millrace_operator.topics import status
from millrace_operator.topics.plan import Outcome, TopicsPlan, plan
from millrace_operator.topics.state import Cluster, Declared, Kafka, Reader, parse_topic

logger = logging.getLogger(__name__)
WRITERS = 16  # statuses that are written at the same time
PAUSES = (0.05, 0.2, 0.5, 1.0)  # seconds before what was changed is looked at again, so that Ready is said soon
Jobs = Callable[[], Mapping[Key, StreamJob]]


class TopicController:
    def __init__(self, clusters: Clusters, writer: Writer, jobs: Jobs, settings: Settings, counts: Counts) -> None:
        self._clusters, self._writer, self._jobs = clusters, writer, jobs
        self._settings, self._counts = settings, counts
        self._declared: dict[Key, tuple[int, Declared]] = {}
        self._outcomes: dict[Key, Outcome] = {}
        self._errors: dict[tuple[Cluster, str], str] = {}
        self._dirty: set[Key] = set()
        self._news = asyncio.Event()

    def put(self, body: Body) -> None:
        key = key_of(body)
        version, known = self._declared.get(key, (-1, None))
        if known is not None and known.uid == body["metadata"]["uid"] and version_of(body) <= version:
            return
        self._declared[key] = (version_of(body), parse_topic(body, self._settings.jobs.bootstrap_servers))
        self._dirty.add(key)
        self._news.set()

    def drop(self, key: Key) -> None:
        """Whoever shared the topic with it may own it now."""
        _, gone = self._declared.pop(key, (0, None))
        self._outcomes.pop(key, None)
        if gone is not None:
            self._dirty |= {other for other, (_, one) in self._declared.items() if one.topic == gone.topic}
            self._news.set()

    def keep_only(self, keys: Iterable[Key]) -> None:
        """A full list: what is not in it is gone."""
        there = set(keys)
        for key in [key for key in self._declared if key not in there]:
            self.drop(key)

    def declared(self) -> list[Declared]:
        return [one for _, one in self._declared.values()]

    def outcomes(self) -> list[Outcome]:
        return list(self._outcomes.values())

    async def work(self) -> None:
        """Changes at once, everything now and then."""
        looked = 0.0
        while True:
            now = asyncio.get_running_loop().time()
            due = looked + self._settings.pace.topics - now
            if due > 0 and not self._dirty:
                await self._wait(due)
                continue
            await asyncio.sleep(self._settings.pace.coalesce)
            everything = due <= 0
            keys = set(self._declared) if everything else set(self._dirty)
            self._dirty -= keys
            looked = now if everything else looked
            await self.look_at(keys)

    async def _wait(self, seconds: float) -> None:
        self._news.clear()
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return

    async def look_at(self, keys: Iterable[Key]) -> None:
        """Every cluster that the resources name, side by side: one that is away holds no other up."""
        started = time.monotonic()
        clusters: dict[Cluster, list[Declared]] = defaultdict(list)
        for key in keys:
            if key in self._declared:
                one = self._declared[key][1]
                clusters[one.cluster].append(one)
        results = await asyncio.gather(
            *(self._cluster(cluster, topics) for cluster, topics in clusters.items()), return_exceptions=True
        )
        failed = [error for error in results if isinstance(error, BaseException)]
        for error in failed:
            logger.error("topics: %s", error, exc_info=error)
        self._counts.reconciled("Topic", "failed" if failed else "done", time.monotonic() - started)

    async def _cluster(self, cluster: Cluster, topics: list[Declared]) -> None:
        """Look, change, and look again until there is nothing to change: a broker's answers lag behind its deeds."""
        for pause in PAUSES:
            planned = await self._planned(cluster, topics)
            await self._tell(planned.outcomes)
            if planned.is_quiet or not self._writer.may_write():
                return
            if not await self._change(cluster, planned):
                break
            await asyncio.sleep(pause)
        await self._tell((await self._planned(cluster, topics)).outcomes)

    async def _change(self, cluster: Cluster, planned: TopicsPlan) -> bool:
        """Whether anything was taken; what was refused is remembered until a later try is taken."""
        errors = await self._clusters.ask(cluster, lambda broker: broker.carry_out(planned))
        tried = planned.topics()
        for topic in tried:
            self._errors.pop((cluster, topic), None)
        self._errors |= {(cluster, topic): said for topic, said in errors.items()}
        self._log(planned, errors)
        return tried != errors.keys()

    async def _planned(self, cluster: Cluster, topics: list[Declared]) -> TopicsPlan:
        everyone = self._sharing(topics, cluster)
        errors = {topic: said for (where, topic), said in self._errors.items() if where == cluster}
        kafka = await self._look(cluster, everyone)
        planned = plan(everyone, kafka, errors=errors)
        if planned.ask:
            planned = plan(everyone, kafka, await self._readers(cluster, planned.ask), errors)
        return planned

    def _sharing(self, topics: list[Declared], cluster: Cluster) -> list[Declared]:
        """The resources themselves, as they are now, and those that name the same topics of the same cluster."""
        names = {one.topic for one in topics}
        own = self._clusters.cluster_id(cluster)
        return [
            one
            for _, one in self._declared.values()
            if one.topic in names and self._clusters.cluster_id(one.cluster) == own
        ]

    async def _look(self, cluster: Cluster, topics: list[Declared]) -> Kafka:
        names = {one.topic for one in topics if one.invalid is None}
        try:
            return await self._clusters.ask(cluster, lambda broker: broker.look(names))
        except ClusterError as error:
            return Kafka(problem=str(error), reason=error.reason)

    async def _readers(self, cluster: Cluster, topics: Iterable[str]) -> dict[str, tuple[Reader, ...]]:
        """A job whose position cannot be read counts as one that has read nothing."""
        own = self._clusters.cluster_id(cluster)
        jobs = {
            key: job
            for key, job in self._jobs().items()
            if self._clusters.cluster_id(self._clusters.cluster_of(job)) == own
        }
        found: dict[str, tuple[Reader, ...]] = {}
        for topic in topics:
            groups = groups_reading(topic, jobs)
            try:
                found[topic] = await self._clusters.ask(
                    cluster,
                    lambda broker, name=topic, these=groups: broker.readers(name, these),  # type: ignore[misc]
                )
            except (KafkaException, TimeoutError, ClusterError):
                found[topic] = tuple(Reader(job, 1, float("inf")) for job in groups)
        return found

    async def _tell(self, outcomes: Iterable[Outcome]) -> None:
        limit = asyncio.Semaphore(WRITERS)
        now = datetime.now(UTC)

        async def one(outcome: Outcome) -> None:
            async with limit:
                await self._tell_one(outcome, now)

        await asyncio.gather(*(one(outcome) for outcome in outcomes))

    async def _tell_one(self, outcome: Outcome, now: datetime) -> None:
        ref = outcome.declared.ref
        self._outcomes[Key(ref.namespace, ref.name)] = outcome
        try:
            done = await self._writer.carry_out(status.actions(outcome, now))
        except (ApiError, UnreachableError) as error:
            if not (isinstance(error, ApiError) and error.status == 404):
                logger.warning("topic %s/%s: %s; trying again", ref.namespace, ref.name, error)
                self._dirty.add(Key(ref.namespace, ref.name))
            return
        except NotLeaderError:
            return
        for body in done.written:
            self._learn(body)

    def _learn(self, body: Body) -> None:
        """Our own write is no news: it replaces what is known without waking anyone."""
        if body["metadata"].get("deletionTimestamp") and not body["metadata"].get("finalizers"):
            return
        key = key_of(body)
        if key in self._declared and version_of(body) > self._declared[key][0]:
            self._declared[key] = (version_of(body), parse_topic(body, self._settings.jobs.bootstrap_servers))

    def _log(self, planned: TopicsPlan, errors: Errors) -> None:
        counts = {"create": planned.create, "grow": planned.grow, "alter": planned.alter, "delete": planned.delete}
        done = ", ".join(f"{what} {len(which)}" for what, which in counts.items() if which)
        logger.info("topics: %s; refused %d", done, len(errors))
