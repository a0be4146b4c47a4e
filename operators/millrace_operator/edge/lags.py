"""What the lag observer says about jobs: one request for all of them, now and then."""

import asyncio
import logging
from collections.abc import Iterable

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from millrace import metrics
from millrace_operator.edge.cache import Key
from millrace_operator.streamjobs.state import Lag

logger = logging.getLogger(__name__)
WANTED = (metrics.JOB_LAG_RECORDS.name, metrics.JOB_LAG_SECONDS.name, metrics.JOB_VERDICT.name)
STALE_LOOKS = 3  # after so many failed looks in a row the figures are no longer shown


class Lags:
    """Keeps the last answer. Without an address nothing is ever known."""

    def __init__(self, session: aiohttp.ClientSession, address: str | None, deadline: float, every: float) -> None:
        self._session, self._address, self._deadline, self._every = session, address, deadline, every
        self._known: dict[Key, Lag] = {}

    def of(self, key: Key) -> Lag | None:
        return self._known.get(key)

    async def keep(self) -> None:
        """Ask for ever."""
        failed = 0
        while self._address is not None:
            try:
                self._known, failed = await self._ask(self._address), 0
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                failed += 1
                logger.warning("the lag observer does not answer: %s", error or type(error).__name__)
                self._known = {} if failed >= STALE_LOOKS else self._known
            await asyncio.sleep(self._every)

    async def _ask(self, address: str) -> dict[Key, Lag]:
        limit = aiohttp.ClientTimeout(total=self._deadline)
        async with self._session.get(address, timeout=limit) as answer:
            answer.raise_for_status()
            return parse(await answer.text())


def parse(text: str) -> dict[Key, Lag]:
    """Records summed and seconds at their worst over a job's partitions."""
    records: dict[Key, float] = {}
    seconds: dict[Key, float] = {}
    verdicts: dict[Key, str] = {}
    wanted = "\n".join(_lines(text.splitlines())) + "\n"
    for family in text_string_to_metric_families(wanted):
        for sample in family.samples:
            key = Key(sample.labels["namespace"], sample.labels["job"])
            if family.name == metrics.JOB_LAG_RECORDS.name:
                records[key] = records.get(key, 0) + sample.value
            elif family.name == metrics.JOB_LAG_SECONDS.name:
                seconds[key] = max(seconds.get(key, 0.0), sample.value)
            elif sample.value == 1:
                verdicts[key] = sample.labels["verdict"]
    return {key: Lag(int(total), seconds.get(key, 0.0), verdicts.get(key)) for key, total in records.items()}


def _lines(lines: Iterable[str]) -> Iterable[str]:
    """Only what is of use: parsing is the costly part."""
    return (line for line in lines if line.startswith(WANTED))
