"""What the operator counts about itself, kept as a snapshot in the terms of the platform's metric names."""

import time
from collections import defaultdict
from dataclasses import dataclass, field

from millrace import metrics
from millrace.metrics import Histogram

KINDS = ("StreamJob", "Topic")


@dataclass
class Counts:
    """Written by controllers, read by the collector; one event loop, so no lock."""

    reconciliations: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    durations: dict[str, Histogram] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    webhooks: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def reconciled(self, kind: str, result: str, seconds: float, at: float | None = None) -> None:
        self.reconciliations[kind, result] += 1
        metric = metrics.OPERATOR_RECONCILE_DURATION
        self.durations[kind] = self.durations.get(kind, Histogram.empty(metric)).observe(metric, seconds)
        if result == "done":
            self.last[kind] = at if at is not None else time.time()
