"""Every metric of the platform, spelt once: name, kind, meaning, labels, and which process exports it.

Job runtime, lag observer, operator, alert rules and dashboards all take their names from here. A process turns its own
snapshot of values into families with `families`; nothing is registered globally and nothing happens at import.

No two processes export the same metric, because Prometheus would take their samples for one series. What must still be
there when a job is dead (lag, goals, whether it is suspended) is the observer's, never the driver's.
Scrape with `honor_labels: true`: `job` and `namespace` are the job's own, not those of the scraped target.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family

PREFIX = "millrace_"

Kind = Literal["gauge", "counter", "histogram"]
Exporter = Literal["driver", "observer", "operator"]
Labels = tuple[str, ...]


@dataclass(frozen=True)
class Metric:
    """One metric. `buckets` are the upper bounds of a histogram, without +Inf."""

    name: str
    kind: Kind
    help: str
    labels: Labels
    exporter: Exporter
    buckets: tuple[float, ...] = ()


@dataclass(frozen=True)
class Histogram:
    """A histogram's state: how many values fell into each bucket (not cumulative; the last is +Inf), and their sum."""

    counts: tuple[int, ...]
    sum: float

    @classmethod
    def empty(cls, metric: Metric) -> "Histogram":
        return cls((0,) * (len(metric.buckets) + 1), 0.0)

    def observe(self, metric: Metric, value: float) -> "Histogram":
        """The same histogram with one value more. A value on a bound belongs below it."""
        index = next((i for i, bound in enumerate(metric.buckets) if value <= bound), len(metric.buckets))
        counts = tuple(count + (i == index) for i, count in enumerate(self.counts))
        return Histogram(counts, self.sum + value)


Value = float | Histogram
Snapshot = Mapping[Metric, Mapping[Labels, Value]]
"""Values by metric and label values, in the order of the metric's labels."""

JOB = ("namespace", "job")
TOPIC_OF_JOB = (*JOB, "topic")
PARTITION_OF_JOB = (*JOB, "topic", "partition")
SINK_OF_JOB = (*JOB, "sink")
TOPIC = ("namespace", "topic")

LATE_OUTCOMES = ("dropped", "aside", "corrected")
MALFORMED_REASONS = ("unparsable", "no-event-time")
BATCH_PHASES = ("judge", "results", "sinks", "ledger")
VERDICTS = ("ok", "catching-up", "falling-behind", "stalled", "stopped", "rewound", "losing-data", "unknown")

_catalogue: list[Metric] = []


def _metric(
    kind: Kind, name: str, text: str, labels: Labels, exporter: Exporter, buckets: tuple[float, ...] = ()
) -> Metric:
    metric = Metric(PREFIX + name, kind, text, labels, exporter, buckets)
    _catalogue.append(metric)
    return metric


# What the broker says about a job, also when it hangs or is dead.
JOB_INFO = _metric(
    "gauge",
    "job_info",
    "Always 1: the job's consumer group and what it does with stragglers.",
    (*JOB, "group", "stragglers"),
    "observer",
)
JOB_LAG_RECORDS = _metric(
    "gauge", "job_lag_records", "Records in the partition that the job has not done yet.", PARTITION_OF_JOB, "observer"
)
JOB_LAG_SECONDS = _metric(
    "gauge",
    "job_lag_seconds",
    "Age of the oldest record in the partition that the job has not done yet; 0 when there is none.",
    PARTITION_OF_JOB,
    "observer",
)
JOB_RETENTION_MARGIN = _metric(
    "gauge",
    "job_retention_margin_seconds",
    "Time until retention may delete the oldest record that the job has not done yet; +Inf where nothing is deleted.",
    PARTITION_OF_JOB,
    "observer",
)
JOB_RECORDS_LOST = _metric(
    "counter",
    "job_records_lost_total",
    "Records that retention deleted before the job had read them.",
    PARTITION_OF_JOB,
    "observer",
)
JOB_LAST_PROGRESS = _metric(
    "gauge",
    "job_last_progress_timestamp_seconds",
    "When the job's position last moved forward, or when it last had nothing left to read.",
    JOB,
    "observer",
)
JOB_VERDICT = _metric(
    "gauge",
    "job_verdict",
    "1 for the verdict on the job's lag that holds now, 0 for the others.",
    (*JOB, "verdict"),
    "observer",
)
JOB_CATCH_UP = _metric(
    "gauge",
    "job_catch_up_seconds",
    "Predicted time until the job has caught up: 0 when it has, +Inf when it does not come nearer.",
    JOB,
    "observer",
)
JOB_OBSERVED = _metric(
    "gauge",
    "job_observed_timestamp_seconds",
    "When the figures about the job's lag were last read from the broker; old means that they are stale.",
    JOB,
    "observer",
)
JOB_SUSPENDED = _metric("gauge", "job_suspended", "1 while the job's spec says suspend.", JOB, "observer")
JOB_SLO_LAG = _metric(
    "gauge", "job_slo_lag_seconds", "The job's goal: its oldest unread record may be so old.", JOB, "observer"
)
JOB_SLO_STRAGGLERS = _metric(
    "gauge", "job_slo_straggler_ratio", "The job's goal: so large a part of its events may be late.", JOB, "observer"
)

# What the job itself counts, from its ledger.
JOB_EVENTS_READ = _metric("counter", "job_events_read_total", "Records read from the topic.", TOPIC_OF_JOB, "driver")
JOB_EVENTS_ON_TIME = _metric("counter", "job_events_on_time_total", "Events that were on time.", TOPIC_OF_JOB, "driver")
JOB_EVENTS_LATE = _metric(
    "counter",
    "job_events_late_total",
    "Stragglers, by what became of them: dropped, aside or corrected.",
    (*TOPIC_OF_JOB, "outcome"),
    "driver",
)
JOB_EVENTS_LATE_IDLE = _metric(
    "counter",
    "job_events_late_idle_total",
    "Stragglers that were late only because their partition had been idle; part of job_events_late_total.",
    TOPIC_OF_JOB,
    "driver",
)
JOB_WINDOWS_MISSED = _metric(
    "counter", "job_windows_missed_total", "Windows that stragglers came too late for.", TOPIC_OF_JOB, "driver"
)
JOB_EVENTS_MALFORMED = _metric(
    "counter",
    "job_events_malformed_total",
    "Records that could not be read as events, by reason: unparsable or no-event-time.",
    (*TOPIC_OF_JOB, "reason"),
    "driver",
)
JOB_EVENTS_FUTURE = _metric(
    "counter",
    "job_events_future_total",
    "Events whose time was further ahead than maxFutureSkew: a producer's clock runs ahead.",
    PARTITION_OF_JOB,
    "driver",
)
JOB_EVENT_LATENESS = _metric(
    "histogram",
    "job_event_lateness_seconds",
    "How late stragglers were: a delay longer by so much would have saved them.",
    TOPIC_OF_JOB,
    "driver",
    (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400),
)
JOB_BATCHES = _metric("counter", "job_batches_total", "Batches that were finished.", JOB, "driver")
JOB_LAST_BATCH = _metric(
    "gauge", "job_last_batch_timestamp_seconds", "When the last batch was finished.", JOB, "driver"
)
JOB_BATCH_DURATION = _metric(
    "histogram",
    "job_batch_duration_seconds",
    "How long a batch took from its start to its ledger entry.",
    JOB,
    "driver",
    (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600),
)
JOB_BATCH_PHASE = _metric(
    "counter",
    "job_batch_phase_seconds_total",
    "Time spent in each phase of the batches: judge, results, sinks or ledger.",
    (*JOB, "phase"),
    "driver",
)
JOB_WATERMARK = _metric(
    "gauge",
    "job_watermark_timestamp_seconds",
    "Event time up to which windows are closed; absent until every partition has brought an event.",
    JOB,
    "driver",
)
JOB_STATE_ROWS = _metric("gauge", "job_state_rows", "Rows that the job keeps as state.", JOB, "driver")
JOB_STATE_BYTES = _metric("gauge", "job_state_bytes", "Size of what the job keeps as state.", JOB, "driver")
JOB_SINK_UP = _metric("gauge", "job_sink_up", "1 when the last write to the sink succeeded.", SINK_OF_JOB, "driver")
JOB_SINK_RECORDS = _metric("counter", "job_sink_records_total", "Results written to the sink.", SINK_OF_JOB, "driver")
JOB_SINK_FAILURES = _metric(
    "counter", "job_sink_failures_total", "Writes to the sink that failed.", SINK_OF_JOB, "driver"
)
JOB_CHECKPOINT_FAILURES = _metric(
    "counter", "job_checkpoint_failures_total", "Writes to the checkpoint or the ledger that failed.", JOB, "driver"
)

# What the operator knows.
JOB_PHASE = _metric(
    "gauge", "job_phase", "1 for the phase that the job is in, 0 for the others.", (*JOB, "phase"), "operator"
)
JOB_UPGRADING = _metric("gauge", "job_upgrading", "1 while a new version of the job takes over.", JOB, "operator")
JOB_RESTARTS = _metric(
    "counter", "job_restarts_total", "Restarts of the job's driver, by cause.", (*JOB, "cause"), "operator"
)
JOB_REMEDIATIONS = _metric(
    "counter",
    "job_remediations_total",
    "Actions that an alert led to, by action and mode (advise: shown and not done; act: done).",
    (*JOB, "action", "mode"),
    "operator",
)
TOPIC_INFO = _metric(
    "gauge",
    "topic_info",
    "Always 1: the topic's name in Kafka and its cleanup policy.",
    (*TOPIC, "kafka_topic", "cleanup"),
    "operator",
)
TOPIC_READY = _metric("gauge", "topic_ready", "1 when the topic in Kafka is as declared.", TOPIC, "operator")
TOPIC_DECLARED_PARTITIONS = _metric(
    "gauge", "topic_declared_partitions", "Partitions that the Topic resource declares.", TOPIC, "operator"
)
TOPIC_PARTITIONS = _metric(
    "gauge", "topic_partitions", "Partitions that the topic has in Kafka; 0 when it is not there.", TOPIC, "operator"
)
TOPIC_RETENTION_HELD = _metric(
    "gauge",
    "topic_retention_held",
    "1 while the operator holds the topic's retention longer than declared, so that a job loses no data.",
    TOPIC,
    "operator",
)
OPERATOR_INFO = _metric("gauge", "operator_info", "Always 1: the operator's version.", ("version",), "operator")
OPERATOR_LEADER = _metric("gauge", "operator_leader", "1 when this operator is the one that acts.", (), "operator")
OPERATOR_RECONCILIATIONS = _metric(
    "counter",
    "operator_reconciliations_total",
    "Reconciliations, by kind of resource and result (done, waiting, failed).",
    ("kind", "result"),
    "operator",
)
OPERATOR_RECONCILE_DURATION = _metric(
    "histogram",
    "operator_reconcile_duration_seconds",
    "How long a reconciliation took.",
    ("kind",),
    "operator",
    (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
OPERATOR_LAST_RECONCILE = _metric(
    "gauge",
    "operator_last_reconcile_timestamp_seconds",
    "When a reconciliation last succeeded, by kind of resource.",
    ("kind",),
    "operator",
)
OPERATOR_QUEUE_DEPTH = _metric(
    "gauge", "operator_queue_depth", "Resources that wait for reconciliation.", (), "operator"
)
OPERATOR_WEBHOOKS = _metric(
    "counter",
    "operator_webhooks_total",
    "Alertmanager notifications that came in, by result (taken, refused, failed, denied).",
    ("result",),
    "operator",
)

# The observer's own health.
OBSERVER_UP = _metric(
    "gauge", "observer_up", "1 when the last poll of the Kafka cluster succeeded.", ("cluster",), "observer"
)
OBSERVER_LAST_SUCCESS = _metric(
    "gauge",
    "observer_last_success_timestamp_seconds",
    "When the Kafka cluster was last polled with success; 0 when never.",
    ("cluster",),
    "observer",
)
OBSERVER_POLL_DURATION = _metric(
    "gauge", "observer_poll_duration_seconds", "How long the last poll of the cluster took.", ("cluster",), "observer"
)
OBSERVER_POLLS = _metric(
    "counter",
    "observer_polls_total",
    "Polls of the cluster, by result (ok, failed).",
    ("cluster", "result"),
    "observer",
)
OBSERVER_REQUESTS = _metric(
    "counter",
    "observer_requests_total",
    "Batched questions put to the cluster, by what was asked.",
    ("cluster", "question"),
    "observer",
)
OBSERVER_JOBS = _metric("gauge", "observer_jobs", "Jobs that are watched in the cluster.", ("cluster",), "observer")
OBSERVER_UNTIMED = _metric(
    "gauge",
    "observer_untimed_partitions",
    "Partitions whose record at the position could not be read in time; their lag in seconds is an upper bound.",
    ("cluster",),
    "observer",
)
OBSERVER_JOBS_LISTED = _metric(
    "gauge",
    "observer_jobs_listed_timestamp_seconds",
    "When the list of jobs was last read with success; 0 when never.",
    (),
    "observer",
)

ALL: tuple[Metric, ...] = tuple(_catalogue)


def families(snapshot: Snapshot) -> Iterator[Family]:
    """The snapshot as families of prometheus_client, one per metric, for a collector to yield."""
    for metric, samples in snapshot.items():
        if metric.kind == "histogram":
            yield _histogram(metric, samples)
        else:
            yield _simple(metric, samples)


def one_hot(base: Labels, states: tuple[str, ...], now: str) -> dict[Labels, Value]:
    """Samples of a metric with one series per state: 1 for the one that holds now."""
    return {(*base, state): float(state == now) for state in states}


def _simple(metric: Metric, samples: Mapping[Labels, Value]) -> Family:
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(metric.name, metric.help, labels=metric.labels)
    for labels, value in samples.items():
        family.add_metric(labels, _number(metric, labels, value))
    return family


def _histogram(metric: Metric, samples: Mapping[Labels, Value]) -> Family:
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in samples.items():
        if not isinstance(value, Histogram) or len(value.counts) != len(metric.buckets) + 1:
            raise TypeError(f"{metric.name} needs a histogram of {len(metric.buckets) + 1} buckets")
        _fits(metric, labels)
        family.add_metric(labels, _cumulative(metric, value), value.sum)
    return family


def _cumulative(metric: Metric, histogram: Histogram) -> list[tuple[str, float]]:
    total, buckets = 0, []
    for bound, count in zip((*map(_bound, metric.buckets), "+Inf"), histogram.counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets


def _bound(value: float) -> str:
    return str(float(value))


def _number(metric: Metric, labels: Labels, value: Value) -> float:
    _fits(metric, labels)
    if isinstance(value, Histogram) or value != value:
        raise TypeError(f"{metric.name} needs a number, not {value}")
    return float(value)


def _fits(metric: Metric, labels: Labels) -> None:
    if len(labels) != len(metric.labels):
        raise TypeError(f"{metric.name} has the labels {', '.join(metric.labels)}, not {len(labels)} values")
