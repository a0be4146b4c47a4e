"""The operator as a whole: wires the parts together, runs them while it is the leader, and ends cleanly."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import aiohttp
import kopf
from prometheus_client import CollectorRegistry

from millrace.resources import StreamJob
from millrace_operator import alerts
from millrace_operator.desired.target import MANAGED_BY, MANAGER
from millrace_operator.edge import server, watches
from millrace_operator.edge.api import Api, ApiError, UnreachableError
from millrace_operator.edge.apply import GONE, Writer
from millrace_operator.edge.cache import Cache, Key, job_of, key_of
from millrace_operator.edge.canary import Canary
from millrace_operator.edge.clusters import Clusters
from millrace_operator.edge.collector import OperatorCollector
from millrace_operator.edge.counts import Counts
from millrace_operator.edge.credentials import Credentials
from millrace_operator.edge.doors import Door
from millrace_operator.edge.jobs import JobController, Observer
from millrace_operator.edge.lags import Lags
from millrace_operator.edge.leader import Leader
from millrace_operator.edge.progress import Progresses
from millrace_operator.edge.secrets import Secrets
from millrace_operator.edge.topics import TopicController
from millrace_operator.settings import Settings
from millrace_operator.streamjobs.alerting import ALERTS

logger = logging.getLogger(__name__)
EXIT_SECONDS = 10.0
ATTEMPTS = 5  # to write an alert down while others write to the same job


class Operator:
    """Everything in one event loop."""

    def __init__(self, api: Api, session: aiohttp.ClientSession, credentials: Credentials, settings: Settings) -> None:
        self._api, self._credentials, self._settings = api, credentials, settings
        identity = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self.leader = Leader(api, settings.home, identity, settings.election)
        self.counts, self._cache = Counts(), Cache()
        self._writer = Writer(api, self.leader.is_leader)
        self._clusters = Clusters(settings.jobs.bootstrap_servers, settings.deadlines.kafka, Secrets(api).security)
        self._lags = Lags(session, settings.lag_observer, settings.deadlines.observer, settings.pace.figures)
        progresses = Progresses(api, session, self._clusters, settings.deadlines.driver, settings.through_api)
        self._observer = Observer(api, self._cache, progresses, self._lags, self._clusters)
        self._clusters.know_jobs(self._observer.job)
        self._jobs = JobController(self._cache, self._observer, self._writer, settings, self.counts)
        self._topics = TopicController(self._clusters, self._writer, self._known_jobs, settings, self.counts)
        self._canary = Canary(api, self._canary_namespace(), self.leader.is_leader)

    # What the watches tell

    def seen(self, kind: str, body: Mapping[str, Any]) -> None:
        if kind == "StreamJob":
            self._wake(key_of(body)) if self._cache.put_job(body) else None
        elif kind == "Topic":
            self._topics.put(body)
        elif not (kind == "ConfigMap" and self._canary.seen(dict(body))) and self._cache.put_part(body):
            self._wake(job_of(body))

    def gone(self, kind: str, body: Mapping[str, Any]) -> None:
        if kind == "StreamJob":
            self._cache.drop_job(key_of(body))
            self._wake(key_of(body))
        elif kind == "Topic":
            self._topics.drop(key_of(body))
        else:
            self._cache.drop_part(kind, body)
            self._wake(job_of(body))

    def _wake(self, key: Key | None) -> None:
        if key is not None:
            self._jobs.queue.wake(key)

    # Life

    async def run(self, port: int | None, stop: asyncio.Event) -> bool:
        """Until `stop`; False when the lease was lost and somebody else may act."""
        runner = await server.serve(self._pages(), port) if port is not None else None
        try:
            if await _first(stop.wait(), self.leader.acquire()) == 0:
                return True
            return await self._act(stop)
        finally:
            await self.leader.release()
            if runner is not None:
                await runner.cleanup()

    async def _act(self, stop: asyncio.Event) -> bool:
        if await _first(stop.wait(), self._know_everything(), self.leader.keep()) != 1:
            return stop.is_set()
        watching = asyncio.Event()
        ended = asyncio.Event()
        workers = [self._jobs.work() for _ in range(self._settings.pace.workers)]
        background = [self._topics.work(), self._lags.keep(), self._canary.sing(), self._resync(), *workers]
        tasks = [asyncio.create_task(one) for one in background]
        kopf_task = asyncio.create_task(self._watch(ended, watching))
        try:
            first = await _first(stop.wait(), self.leader.keep(), asyncio.shield(kopf_task))
            return first == 0
        finally:
            for task in tasks:
                task.cancel()
            ended.set()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), EXIT_SECONDS)
            await self.leader.release()  # nothing writes any more, so the next one need not wait for the watches' end
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(kopf_task, EXIT_SECONDS)

    async def _watch(self, stop: asyncio.Event, ready: asyncio.Event) -> None:
        namespaces = self._settings.namespaces
        await kopf.operator(
            registry=watches.registry(self, self._credentials),
            settings=watches.settings(),
            standalone=True,
            clusterwide=not namespaces,
            namespaces=namespaces,
            stop_flag=stop,
            ready_flag=ready,
        )

    async def _know_everything(self) -> None:
        """Nobody acts before all is known: a job whose ConfigMap was not seen yet would look like a new one."""
        while True:
            try:
                return await self.list_everything()
            except (ApiError, UnreachableError) as error:
                logger.warning("first list: %s; trying again", error)
                await asyncio.sleep(self._settings.election.retry)

    async def _resync(self) -> None:
        """Lists everything now and then: a watch does not tell what was deleted while it was broken."""
        while True:
            await asyncio.sleep(self._settings.pace.resync)
            try:
                await self.list_everything()
            except (ApiError, UnreachableError) as error:
                logger.warning("resync: %s; trying again later", error)

    async def list_everything(self) -> None:
        for kind in watches.PARTS:
            self._cache.replace_parts(kind, await self._list(kind, labelSelector=f"{MANAGED_BY}={MANAGER}"))
        jobs = {key_of(body): body for body in await self._list("StreamJob")}
        for key in [key for key in self._cache.jobs if key not in jobs]:
            self._cache.drop_job(key)
        for key, body in jobs.items():
            self._cache.put_job(body)
            self._wake(key)
        topics = await self._list("Topic")
        self._topics.keep_only(key_of(body) for body in topics)
        for body in topics:
            self._topics.put(body)

    async def _list(self, kind: str, **selectors: str) -> list[dict[str, Any]]:
        places: tuple[str | None, ...] = self._settings.namespaces or (None,)
        return [body for place in places for body in await self._api.list(kind, place, **selectors)]

    # The HTTP port

    def _pages(self) -> server.Pages:
        registry = CollectorRegistry()
        depth = self._jobs.queue.ready
        registry.register(OperatorCollector(self._cache, self._topics, self.counts, self.leader.is_leader, depth))

        def count(result: str) -> None:
            self.counts.webhooks[result] += 1

        door = Door(self._settings.alerts)
        return server.Pages(self._canary.is_alive, registry, self.take_alerts, count, door.objection)

    async def take_alerts(self, notification: Any) -> int:
        """Whichever replica hears of an alert writes it down; the leader sees it through its watch.

        Two notifications at once must not undo each other, so each write names the version that was read.
        """
        for attempt in range(ATTEMPTS):
            actions = alerts.annotations(notification, await self._alerted(), datetime.now(UTC))
            try:
                await Writer(self._api, lambda: True).carry_out(actions)
            except ApiError as error:
                if error.status not in GONE or attempt == ATTEMPTS - 1:
                    raise
            else:
                break
        return len(actions)

    async def _alerted(self) -> dict[tuple[str, str], alerts.Kept]:
        found: dict[tuple[str, str], alerts.Kept] = {}
        for body in await self._list("StreamJob"):
            meta = body["metadata"]
            kept = alerts.Kept((meta.get("annotations") or {}).get(ALERTS, ""), meta.get("resourceVersion"))
            found[meta["namespace"], meta["name"]] = kept
        return found

    def _known_jobs(self) -> dict[Key, StreamJob]:
        found = {key: self._observer.job(key) for key in self._cache.jobs}
        return {key: job for key, job in found.items() if job is not None}

    def _canary_namespace(self) -> str:
        watched = self._settings.namespaces
        return self._settings.home if not watched or self._settings.home in watched else watched[0]


async def _first(*coroutines: Any) -> int:
    """Which of them ends first; the others are cancelled."""
    tasks = [asyncio.ensure_future(one) for one in coroutines]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    first = next(index for index, task in enumerate(tasks) if task in done)
    tasks[first].result()
    return first


async def run(credentials: Credentials, settings: Settings, port: int | None) -> int:
    """The process: exit code 0 after a signal, 1 when the lease was lost."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    async with Api(credentials, settings.deadlines.api) as api, aiohttp.ClientSession() as session:
        return 0 if await Operator(api, session, credentials, settings).run(port, stop) else 1
