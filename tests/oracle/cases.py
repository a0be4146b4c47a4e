"""The matrix of window types and straggler policies: for each a StreamJob resource, and a log that is hard for it."""

from dataclasses import dataclass, replace
from typing import Any, get_args

from tests.oracle.logs import LogPlan, make_log
from tests.oracle.model import Job, Log, Policy, WindowType, parse_job
from tests.oracle.oracle import Expectation, expect
from tests.oracle.payloads import CLOCK_COLUMNS, COLUMNS
from tests.oracle.times import SECOND

WINDOWS: dict[WindowType, dict[str, str]] = {
    "tumbling": {"type": "tumbling", "size": "10s"},
    "hopping": {"type": "hopping", "size": "10s", "every": "4s"},  # not a divisor: events have two or three windows
    "sliding": {"type": "sliding", "size": "7s"},
    "session": {"type": "session", "gap": "4s"},
}
# Longer than the stretch of event time in one of eight batches, so that stragglers find their windows published.
ALLOWED_LATENESS = "60s"
AGGREGATES = {
    "events": "count(*)",
    "total": "sum(amount)",
    "cheapest": "min(price)",
    "dearest": "max(price)",
    "mean": "avg(price)",
    "kinds": "sort_array(collect_set(kind))",
}
# Kept apart because an engine may refuse it in a stream.
DISTINCT = {"different": "count(distinct kind)"}
PLANS: dict[str, LogPlan] = {
    "spread": LogPlan(seed=11),
    "keyed": LogPlan(seed=12, keyed=True, devices=16),
    "ahead": LogPlan(seed=13, ahead=130 * SECOND),
    "clocks": LogPlan(seed=14),
    "micros": LogPlan(seed=15, unit=1),
    "small": LogPlan(seed=17, records=300, seconds=150, devices=5),
    "large": LogPlan(seed=16, records=4_000, seconds=900, partitions=6, devices=25),
}


@dataclass(frozen=True)
class Case:
    """One cell: the resource to run, the same read as the oracle's job, the log to write, the topics to read."""

    name: str
    resource: dict[str, Any]
    job: Job
    log: Log
    input_topic: str
    output_topic: str
    malformed_topic: str
    aside_topic: str | None

    def expect(self) -> Expectation:
        return expect(self.job, self.log)


def make_case(
    prefix: str,
    window: WindowType,
    policy: Policy,
    *,
    variant: str = "spread",
    bootstrap: str = "localhost:9092",
    aggregates: dict[str, str] | None = None,
    max_records_per_batch: int | None = None,
    seed: int | None = None,
    skip_defects: tuple[str, ...] = (),
) -> Case:
    """A case with topics of its own below the prefix. `variant` is a name in PLANS."""
    name = f"{prefix}-{window}-{policy}-{variant}"
    source = _source(name, variant == "clocks", max_records_per_batch)
    key = ["device", "window_start", *(["window_end"] if window == "sliding" else [])]
    step = {**WINDOWS[window], "by": ["device"], "aggregates": aggregates or AGGREGATES}
    resource = {
        "apiVersion": "millrace.io/v1alpha1",
        "kind": "StreamJob",
        "metadata": {"namespace": "matrix", "name": name},
        "spec": {
            "kafka": {"bootstrapServers": bootstrap},
            "sources": [source],
            "stragglers": _stragglers(name, policy),
            "malformed": {"topic": f"{name}-malformed"},
            "transform": [{"window": step}],
            "sinks": [{"topic": f"{name}-out", "key": key}],
        },
    }
    job, plan = parse_job(resource), PLANS[variant]
    kept = tuple(defect for defect in plan.defects if defect not in skip_defects)
    log = make_log(job, replace(plan, seed=plan.seed if seed is None else seed, defects=kept))
    aside = f"{name}-aside" if policy == "aside" else None
    return Case(name, resource, job, log, f"{name}-in", f"{name}-out", f"{name}-malformed", aside)


def matrix(prefix: str, **options: Any) -> list[Case]:
    """Every window type with every policy; options as for make_case."""
    return [
        make_case(prefix, window, policy, **options) for window in get_args(WindowType) for policy in get_args(Policy)
    ]


def _source(name: str, clocks: bool, max_records: int | None) -> dict[str, Any]:
    event_time: dict[str, Any] = {"column": "at", "maxFutureSkew": "8s"}
    if clocks:
        event_time["clock"] = {"sent": "sent", "received": "received"}
    source: dict[str, Any] = {
        "name": "events",
        "topic": f"{name}-in",
        "format": "json",
        "schema": f"{COLUMNS}, {CLOCK_COLUMNS}" if clocks else COLUMNS,
        "key": "device",
        "eventTime": event_time,
        "startFrom": "earliest",
    }
    return source if max_records is None else {**source, "maxRecordsPerBatch": max_records}


def _stragglers(name: str, policy: Policy) -> dict[str, Any]:
    """An hour until a partition counts as idle keeps idleness, which depends on when things are read, out of this."""
    stragglers: dict[str, Any] = {"delay": "6s", "policy": policy, "idleAfter": "1h"}
    extra = {"drop": {}, "aside": {"topic": f"{name}-aside"}, "correct": {"allowedLateness": ALLOWED_LATENESS}}
    return stragglers | extra[policy]
