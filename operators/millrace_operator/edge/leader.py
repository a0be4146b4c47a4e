"""Leader by a Lease: one operator acts, the others wait. A leader that cannot renew stops before another may start.

Time is the local monotonic clock: a candidate waits until the lease's text has not changed for its whole duration, so
that clocks of machines need not agree.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from millrace_operator.actions import Manifest, Ref
from millrace_operator.edge.api import Api, ApiError, UnreachableError
from millrace_operator.settings import Election

logger = logging.getLogger(__name__)


class Leader:
    """Take part in the election under a name that no other process has."""

    def __init__(self, api: Api, namespace: str, identity: str, settings: Election) -> None:
        self._api = api
        self._ref = Ref("coordination.k8s.io/v1", "Lease", namespace, settings.name)
        self._identity = identity
        self._settings = settings
        self._renewed: float | None = None
        self._seen: tuple[str, float] = ("", 0.0)

    def is_leader(self) -> bool:
        """Whether this process may act now; asked before every write."""
        return self._renewed is not None and time.monotonic() - self._renewed < self._settings.deadline

    async def acquire(self) -> None:
        """Return when this process is the leader."""
        while not await self._try(self._acquire_once):
            await asyncio.sleep(self._settings.retry)
        logger.info("leader: %s", self._identity)

    async def keep(self) -> None:
        """Renew until that is no longer possible; then return."""
        while self.is_leader():
            await asyncio.sleep(self._settings.renew)
            await self._try(self._renew_once)
        logger.error("the lease could not be renewed: this operator stops acting")

    async def release(self) -> None:
        """Let the next one start at once."""
        if not self.is_leader():
            return
        self._renewed = None
        with contextlib.suppress(ApiError, UnreachableError):
            lease = await self._api.get(self._ref)
            if lease is not None and _holder(lease) == self._identity:
                lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
                await self._api.replace(lease)

    async def _try(self, step: Callable[[], "asyncio.Future[bool] | object"]) -> bool:
        try:
            return bool(await step())  # type: ignore[misc]
        except ApiError as error:
            if error.status != 409:  # someone else was faster
                logger.warning("lease: %s", error)
        except UnreachableError as error:
            logger.warning("lease: %s", error)
        return False

    async def _acquire_once(self) -> bool:
        asked = time.monotonic()
        lease = await self._api.get(self._ref)
        if lease is None:
            await self._api.create(self._lease(None))
        elif self._is_free(lease):
            await self._api.replace(self._lease(lease))
        else:
            return False
        self._renewed = asked
        return True

    async def _renew_once(self) -> bool:
        asked = time.monotonic()
        lease = await self._api.get(self._ref)
        if lease is None or _holder(lease) != self._identity:
            self._renewed = None
            return False
        await self._api.replace(self._lease(lease))
        self._renewed = asked
        return True

    def _is_free(self, lease: Manifest) -> bool:
        if _holder(lease) in ("", self._identity):
            return True
        state = f"{_holder(lease)} {lease['spec'].get('renewTime')}"
        if state != self._seen[0]:
            self._seen = (state, time.monotonic())
        lasts = float(lease["spec"].get("leaseDurationSeconds", self._settings.lease))
        return time.monotonic() - self._seen[1] > lasts

    def _lease(self, old: Manifest | None) -> Manifest:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        spec = {"holderIdentity": self._identity, "leaseDurationSeconds": self._settings.lease, "renewTime": now}
        meta = {"name": self._ref.name, "namespace": self._ref.namespace}
        if old is None:
            return {
                "apiVersion": self._ref.api_version,
                "kind": "Lease",
                "metadata": meta,
                "spec": {**spec, "acquireTime": now},
            }
        same = _holder(old) == self._identity
        acquired = {} if same else {"acquireTime": now, "leaseTransitions": old["spec"].get("leaseTransitions", 0) + 1}
        return {**old, "spec": {**old["spec"], **spec, **acquired}}


def _holder(lease: Manifest) -> str:
    return str(lease.get("spec", {}).get("holderIdentity") or "")
