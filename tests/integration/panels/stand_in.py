"""An HTTP endpoint with every metric that one part of the platform exports, made by the platform's own `families`.

It stands in for a part that a test does not run (the operator needs a cluster), so that every query has data to find.
Values move with time as real ones do. It must never be used where the real part could be.
"""

import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from millrace import metrics as m
from millrace.metrics import Exporter, Histogram, Labels, Metric, Value

HOST = "127.0.0.1"
RUNNING = ("shop", "views")
RESTING = ("shop", "orders")  # suspended, and in the middle of an upgrade: no alert, whatever its other figures say
KNOWN = {
    "partition": ("0", "1"),
    "topic": ("pageviews",),
    "sink": ("results",),
    "verdict": m.VERDICTS,
    "outcome": m.LATE_OUTCOMES,
    "reason": m.MALFORMED_REASONS,
    "result": ("done", "failed", "ok", "taken"),
}
STARTED_EARLIER = 3600.0


class StandIn(Collector):
    """Context manager: the endpoint answers inside, at `address`. `well`: it exports nothing bad."""

    def __init__(
        self, exporter: Exporter, jobs: tuple[Labels, ...] = (RUNNING, RESTING), *, well: bool = False
    ) -> None:
        self._metrics = [metric for metric in m.ALL if metric.exporter == exporter]
        self._jobs = jobs
        self._well = well
        self._started = time.time() - STARTED_EARLIER
        self.address = ""

    def collect(self) -> Iterator[Family]:
        age = time.time() - self._started
        yield from m.families({metric: self._samples(metric, age) for metric in self._metrics})

    def __enter__(self) -> Self:
        registry = CollectorRegistry()
        registry.register(self)
        self._server, self._thread = start_http_server(0, HOST, registry)
        self.address = f"{HOST}:{self._server.server_port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _samples(self, metric: Metric, age: float) -> dict[Labels, Value]:
        return {labels: self._value(metric, labels, age) for labels in self._labels(metric)}

    def _labels(self, metric: Metric) -> list[Labels]:
        rows: list[Labels] = list(self._jobs) if metric.labels[:2] == m.JOB else [()]
        for label in metric.labels[len(rows[0]) :]:
            rows = [(*row, value) for row in rows for value in KNOWN.get(label, (f"a-{label}",))]
        return rows

    def _value(self, metric: Metric, labels: Labels, age: float) -> Value:
        if metric.kind == "histogram":
            return Histogram((int(age),) * (len(metric.buckets) + 1), age)
        if metric.kind == "counter":
            return 1.0 if self._well and metric == m.JOB_RESTARTS else age
        if metric.name.endswith("_timestamp_seconds"):
            return time.time() - 1
        if metric == m.JOB_VERDICT:
            return float(labels[-1] == ("ok" if labels[:2] == RUNNING else "stalled"))
        if metric in (m.JOB_SUSPENDED, m.JOB_UPGRADING):
            return float(labels[:2] == RESTING)
        if metric == m.TOPIC_READY:
            return float(self._well)
        return 0.0 if metric == m.OPERATOR_QUEUE_DEPTH else 1.0
