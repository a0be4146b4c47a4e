"""How jobs move: asks their drivers, and where one does not answer, looks at its consumer group's position.

Keeps, per job, what it saw last and when that last changed. It judges nothing.
"""

import json
import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import aiohttp

from millrace_operator.desired.target import METRICS_PORT
from millrace_operator.edge.api import Api, ApiError, UnreachableError
from millrace_operator.edge.cache import Key
from millrace_operator.streamjobs.state import Pod, Progress

logger = logging.getLogger(__name__)

NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError, ApiError, UnreachableError)
RECENT = timedelta(minutes=10)  # stragglers of so long decide on StragglersHealthy: long enough to have some


class Groups(Protocol):
    """Where a consumer group stands: any number that moves when it does; None when nobody can say."""

    async def position(self, key: Key) -> int | None: ...


@dataclass
class _Memory:
    """What was seen of one run of a driver."""

    run: str
    advanced: datetime
    last: Progress | None = None
    moved: bool = False
    position: int | None = None
    samples: deque[tuple[datetime, int, int]] = field(default_factory=deque)


class Progresses:
    def __init__(
        self, api: Api, session: aiohttp.ClientSession, groups: Groups, deadline: float, proxied: bool
    ) -> None:
        self._api, self._session, self._groups = api, session, groups
        self._deadline, self._proxied = deadline, proxied
        self._memories: dict[Key, _Memory] = {}

    def forget(self, key: Key) -> None:
        self._memories.pop(key, None)

    async def look(self, key: Key, driver: Pod | None, now: datetime) -> Progress | None:
        """None while no driver runs."""
        if driver is None or driver.running_since is None:
            return None
        memory = self._memory(key, driver, now)
        said = await self._ask(key, driver)
        if said is not None:
            return self._told(memory, said, await self._is_healthy(key, driver), now)
        return await self._seen(memory, key, now)

    def _memory(self, key: Key, driver: Pod, now: datetime) -> _Memory:
        run = f"{driver.uid}/{driver.running_since}"
        memory = self._memories.get(key)
        if memory is None or memory.run != run:
            memory = self._memories[key] = _Memory(run, now)
        return memory

    async def _ask(self, key: Key, driver: Pod) -> Mapping[str, Any] | None:
        try:
            said = json.loads(await self._page(key, driver, "status"))
        except (*NO_ANSWER, ValueError) as error:
            logger.debug("%s: the driver does not answer: %s", key, error)
            return None
        return said if isinstance(said, dict) else None

    async def _is_healthy(self, key: Key, driver: Pod) -> bool | None:
        """The driver knows best whether it has nothing to do or hangs; 503 is an answer too."""
        try:
            await self._page(key, driver, "healthz")
        except ApiError as error:
            return False if error.status == 503 else None
        except aiohttp.ClientResponseError as error:
            return False if error.status == 503 else None
        except NO_ANSWER:
            return None
        return True

    async def _page(self, key: Key, driver: Pod, page: str) -> bytes:
        if self._proxied:
            path = f"/api/v1/namespaces/{key.namespace}/pods/{driver.name}:{METRICS_PORT}/proxy/{page}"
            return await self._api.request("GET", path, deadline=self._deadline)
        limit = aiohttp.ClientTimeout(total=self._deadline)
        async with self._session.get(f"http://{driver.ip}:{METRICS_PORT}/{page}", timeout=limit) as answer:
            answer.raise_for_status()
            return await answer.read()

    def _told(self, memory: _Memory, said: Mapping[str, Any], healthy: bool | None, now: datetime) -> Progress:
        progress = replace(parse(said), healthy=healthy)
        changed = memory.last is not None and progress.batch != memory.last.batch
        memory.moved = memory.moved or changed
        if changed or healthy:
            memory.advanced = now
        ratio = _late_ratio(memory, said, now)
        memory.last = replace(progress, advanced=memory.advanced, moved=memory.moved, late_ratio=ratio)
        return memory.last

    async def _seen(self, memory: _Memory, key: Key, now: datetime) -> Progress:
        position = await self._groups.position(key)
        if position is not None and position != memory.position:
            if memory.position is not None:
                memory.advanced = now
            memory.position = position
        last = memory.last or Progress()
        return replace(last, told_by="group", advanced=memory.advanced)


def parse(said: Mapping[str, Any]) -> Progress:
    """The driver's status, as far as it is of use here."""
    sources = [one for one in (said.get("sources") or {}).values() if isinstance(one, dict)]
    return Progress(
        state=said.get("state"),
        cause=said.get("cause"),
        message=said.get("message"),
        batch=said.get("batch"),
        read=sum(one.get("read", 0) for one in sources),
        dropped=sum(one.get("dropped", 0) for one in sources),
        watermark=said.get("watermark"),
    )


def _late_ratio(memory: _Memory, said: Mapping[str, Any], now: datetime) -> float | None:
    """Late events among those judged in the recent past."""
    sources = [one for one in (said.get("sources") or {}).values() if isinstance(one, dict)]
    late: int = sum(one.get("late") or sum(one.get(k, 0) for k in ("dropped", "aside", "corrected")) for one in sources)
    judged = late + sum(one.get("on_time", 0) for one in sources)
    samples = memory.samples
    samples.append((now, judged, late))
    while len(samples) > 2 and now - samples[1][0] > RECENT:
        samples.popleft()
    _, judged_before, late_before = samples[0] if len(samples) > 1 else (now, 0, 0)
    if judged - judged_before <= 0:
        return memory.last.late_ratio if memory.last is not None else None
    ratio: float = (late - late_before) / (judged - judged_before)
    return ratio
