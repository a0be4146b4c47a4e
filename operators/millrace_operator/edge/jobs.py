"""StreamJobs, one at a time: observe, plan, apply; whole, every time. What kopf tells only wakes this."""

import asyncio
import logging
import time
from datetime import UTC, datetime, timedelta

from millrace.resources import StreamJob
from millrace_operator.actions import WriteStatus
from millrace_operator.edge.api import Api, ApiError, UnreachableError
from millrace_operator.edge.apply import Done, NotLeaderError, Writer
from millrace_operator.edge.cache import Cache, Key
from millrace_operator.edge.clusters import Clusters
from millrace_operator.edge.counts import Counts
from millrace_operator.edge.lags import Lags
from millrace_operator.edge.progress import Progresses
from millrace_operator.edge.queues import WakeQueue
from millrace_operator.settings import Settings
from millrace_operator.streamjobs import status
from millrace_operator.streamjobs.accept import accepted
from millrace_operator.streamjobs.plan import Plan, plan
from millrace_operator.streamjobs.state import Observed, Pod, parse_resource

logger = logging.getLogger(__name__)
RETRY_SECONDS = 5.0
PENDING = timedelta(seconds=10)  # a pod that waits for longer is worth asking Kubernetes why


class Observer:
    """Collects what a plan is made from. Never writes."""

    def __init__(self, api: Api, cache: Cache, progresses: Progresses, lags: Lags, clusters: Clusters) -> None:
        self._api, self._cache = api, cache
        self._progresses, self._lags, self._clusters = progresses, lags, clusters
        self._refusals: dict[Key, tuple[str, ...]] = {}

    async def observe(self, key: Key) -> Observed | None:
        body = self._cache.jobs.get(key)
        if body is None:
            return None
        resource, now = parse_resource(body), datetime.now(UTC)
        objects, pods = self._cache.parts(key), self._cache.pods(key)
        driver = next((pod for pod in pods if pod.role == "driver"), None)
        job = self.job(key)
        return Observed(
            resource=resource,
            now=now,
            objects=objects,
            pods=pods,
            complaints=await self._complaints(key, driver, now),
            progress=await self._progresses.look(key, driver, now),
            lag=self._lags.of(key),
            topic_problems=self._clusters.topic_problems(job) if job is not None else None,
            refusals=self._refusals.get(key, ()),
        )

    def job(self, key: Key) -> StreamJob | None:
        """The job's accepted version, if it has one."""
        body = self._cache.jobs.get(key)
        target = accepted(parse_resource(body), self._cache.parts(key)) if body is not None else None
        return target.job if target is not None else None

    def remember(self, key: Key, refusals: tuple[str, ...]) -> bool:
        """What the API server refused belongs to what is observed next; whether that is news."""
        before = self._refusals.pop(key, ())
        if refusals:
            self._refusals[key] = refusals
        return before != refusals

    def forget(self, key: Key) -> None:
        self._refusals.pop(key, None)
        self._progresses.forget(key)

    async def _complaints(self, key: Key, driver: Pod | None, now: datetime) -> tuple[str, ...]:
        """Asked only where something waits: events are many, and nobody watches them."""
        wanted = self._cache.parts(key).get(("StatefulSet", f"{key.name}-driver"))
        if driver is None and wanted is not None and wanted["spec"].get("replicas"):
            return await self._warnings(key, wanted["metadata"]["name"], "FailedCreate")
        waits = driver is not None and driver.running_since is None and driver.ended is None
        if driver is not None and waits and now - driver.created > PENDING:
            return await self._warnings(key, driver.name, "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
        return ()

    async def _warnings(self, key: Key, name: str, *reasons: str) -> tuple[str, ...]:
        found = await self._api.list("Event", key.namespace, fieldSelector=f"involvedObject.name={name},type=Warning")
        latest = sorted(found, key=lambda one: one.get("lastTimestamp") or one["metadata"]["creationTimestamp"])
        return tuple(one.get("message", "") for one in reversed(latest) if one.get("reason") in reasons)


class JobController:
    def __init__(self, cache: Cache, observer: Observer, writer: Writer, settings: Settings, counts: Counts) -> None:
        self.queue: WakeQueue[Key] = WakeQueue()
        self._cache, self._observer, self._writer = cache, observer, writer
        self._settings, self._counts = settings, counts
        self._figures_written: dict[Key, float] = {}

    async def work(self) -> None:
        """One worker; several may run."""
        while True:
            key = await self.queue.take()
            try:
                await self._guarded(key)
            finally:
                self.queue.done(key)

    async def _guarded(self, key: Key) -> None:
        started = time.monotonic()
        try:
            look_again = await self.reconcile(key)
        except (ApiError, UnreachableError) as error:
            logger.warning("%s/%s: %s; trying again", *key, error)
            self._counts.reconciled("StreamJob", "failed", time.monotonic() - started)
            self.queue.wake(key, RETRY_SECONDS)
        except NotLeaderError:
            logger.warning("%s/%s: left to the next leader", *key)
        except Exception:
            logger.exception("%s/%s: a defect of the operator", *key)
            self._counts.reconciled("StreamJob", "failed", time.monotonic() - started)
            self.queue.wake(key, self._settings.pace.look * 3)
        else:
            self._counts.reconciled("StreamJob", "done", time.monotonic() - started)
            if look_again is not None:
                self.queue.wake(key, look_again)

    async def reconcile(self, key: Key) -> float | None:
        observed = await self._observer.observe(key)
        if observed is None:
            self._observer.forget(key)
            self._figures_written.pop(key, None)
            return None
        planned = self._without_mere_figures(key, observed, plan(observed, self._settings))
        done = await self._writer.carry_out(planned.actions)
        self._learn(done)
        return 0.0 if self._observer.remember(key, done.refusals) else planned.look_again

    def _learn(self, done: Done) -> None:
        """Our own writes are known at once; the watch may be a moment late."""
        for body in done.written:
            if body["kind"] == "StreamJob":
                self._cache.put_job(body)
            else:
                self._cache.put_part(body)

    def _without_mere_figures(self, key: Key, observed: Observed, planned: Plan) -> Plan:
        """A status whose numbers alone moved is written now and then, not with every batch."""
        if not any(isinstance(one, WriteStatus) for one in planned.actions):
            return planned
        now = asyncio.get_running_loop().time()
        same = status.only_figures_differ(observed.resource.status, planned.status)
        if same and now - self._figures_written.get(key, 0.0) < self._settings.pace.figures:
            rest = tuple(one for one in planned.actions if not isinstance(one, WriteStatus))
            return Plan(rest, planned.status, planned.verdict, planned.look_again)
        self._figures_written[key] = now
        return planned
