"""The canary: a small object that is changed now and then and must come back through the watch and the queue.

An operator whose watch is silently dead looks idle and well; the canary tells the difference.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from millrace.resources.metadata import API_GROUP
from millrace_operator.actions import Manifest
from millrace_operator.desired.target import MANAGED_BY, MANAGER
from millrace_operator.edge.api import Api, ApiError, UnreachableError

logger = logging.getLogger(__name__)
EVERY = 30.0
DEAD_AFTER = 150.0  # longer than a dead watch needs to be noticed and renewed, with an API server restart in between
NAME = "millrace-canary"
BEAT = f"{API_GROUP}/beat"


class Canary:
    def __init__(self, api: Api, namespace: str, may_write: Callable[[], bool]) -> None:
        self._api, self._namespace, self._may_write = api, namespace, may_write
        self._sent: float | None = None
        self._came_back = time.monotonic()

    def is_alive(self) -> bool:
        """Also while the API server is away: then nothing was sent that could have come back."""
        waiting = self._sent is not None and self._sent > self._came_back
        return not waiting or time.monotonic() - self._came_back < DEAD_AFTER

    def seen(self, body: Manifest) -> bool:
        """Whether the object is the canary."""
        meta = body["metadata"]
        if meta["name"] != NAME or meta["namespace"] != self._namespace:
            return False
        self._came_back = time.monotonic()
        return True

    async def sing(self) -> None:
        while True:
            await self._beat()
            await asyncio.sleep(EVERY)

    async def _beat(self) -> None:
        if not self._may_write():
            return
        try:
            await self._api.apply(self._manifest())
        except (ApiError, UnreachableError) as error:
            logger.warning("canary: %s", error)
        else:
            self._sent = time.monotonic()

    def _manifest(self) -> Manifest:
        meta = {
            "name": NAME,
            "namespace": self._namespace,
            "labels": {MANAGED_BY: MANAGER},
            "annotations": {BEAT: str(time.time_ns())},
        }
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
