"""The shop's events in a real log, and the examples that read them, as the oracle wants to see both."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from millrace.kafka.topics import create_missing
from millrace.local.feed import Feed
from millrace.local.topics import plan_topics
from millrace.resources.reading import read_files
from millrace.shop import Shop
from tests.integration.matrix.topics import read_topic
from tests.oracle.check import Observed, check
from tests.oracle.model import Log, Record, parse_job
from tests.oracle.reading import Delivered

EXAMPLES = sorted((Path(__file__).parents[3] / "jobs" / "examples").glob("*.yaml"))
SHOP = Shop(seed=3, events_per_second=15, users=300, history=timedelta(minutes=20))
EVENTS = 20 * 60 * 15
# Columns of results that the oracle does not compute; each has a test of its own.
BEYOND_THE_ORACLE = {"visitors", "mean_order"}


def fill(bootstrap: str) -> dict[str, int]:
    """The shop's events, with the topics made as the examples declare them. Returns how many each topic holds."""
    create_missing(bootstrap, plan_topics(read_files(EXAMPLES)))
    with Feed(bootstrap, SHOP, limit=EVENTS) as feed:
        feed.wait(120)
        feed.check()
    return {topic: sum(kinds.values()) for topic, kinds in feed.sent().items()}


@dataclass(frozen=True)
class Example:
    """One file of the folder, as a plain resource."""

    resource: Mapping[str, Any]

    @classmethod
    def of(cls, file: Path) -> "Example":
        (job,) = (one for one in yaml.safe_load_all(file.read_text()) if one["kind"] == "StreamJob")
        return cls(job)

    @property
    def name(self) -> str:
        return f"{self.resource['metadata']['namespace']}/{self.resource['metadata']['name']}"

    @property
    def source(self) -> Mapping[str, Any]:
        source: Mapping[str, Any] = self.resource["spec"]["sources"][0]
        return source

    def results(self, bootstrap: str) -> list[Delivered]:
        return read_topic(bootstrap, self.resource["spec"]["sinks"][0]["topic"])

    def differences(self, bootstrap: str, report: Mapping[str, Any]) -> list[str]:
        """All in which the example's outcome differs from the oracle's."""
        spec = self.resource["spec"]
        job = parse_job(self.resource)
        assert job.window is not None
        known = {name: one for name, one in job.window.aggregates.items() if name not in BEYOND_THE_ORACLE}
        job = replace(
            job, window=replace(job.window, aggregates=known), max_future_skew=job.max_future_skew or FIVE_MINUTES
        )
        aside = spec["stragglers"].get("topic")
        observed = Observed(
            [_known(one) for one in self.results(bootstrap)],
            read_topic(bootstrap, spec["malformed"]["topic"]),
            read_topic(bootstrap, aside) if aside else (),
            report,
        )
        return check(job, read_log(bootstrap, self.source["topic"]), observed, source=self.source["name"])


FIVE_MINUTES = 5 * 60 * 1_000_000  # the default of maxFutureSkew, which the oracle's reader of specs does not know


def read_log(bootstrap: str, topic: str) -> Log:
    partitions: dict[int, list[Record]] = {}
    for one in read_topic(bootstrap, topic):
        record = Record(topic, one.partition, one.offset, one.timestamp, one.key, one.value)
        partitions.setdefault(one.partition, []).append(record)
    return Log(topic, tuple(tuple(partitions[number]) for number in sorted(partitions)))


def _known(record: Delivered) -> Delivered:
    if record.value is None:
        return record
    row = {name: value for name, value in json.loads(record.value).items() if name not in BEYOND_THE_ORACLE}
    return replace(record, value=json.dumps(row).encode())
