"""The driver's metrics, made from the ledger's newest entry and the process's own snapshot. Nothing is counted here."""

from collections.abc import Iterator

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from millrace import metrics
from millrace.metrics import Histogram, Labels, Metric, Value
from millrace_jobs.ledger import Entry
from millrace_jobs.plans import JobPlan
from millrace_jobs.status import Snapshot, Status

Series = dict[Metric, dict[Labels, Value]]


class JobCollector(Collector):
    """Turns the status into families whenever it is scraped."""

    def __init__(self, plan: JobPlan, status: Status) -> None:
        self._plan, self._status = plan, status

    def collect(self) -> Iterator[Family]:
        yield from metrics.families(series(self._plan, self._status.now))


def series(plan: JobPlan, now: Snapshot) -> Series:
    """Every series of the job."""
    job = (plan.namespace, plan.name)
    found: Series = {
        metrics.JOB_BATCHES: {job: now.batches},
        metrics.JOB_BATCH_DURATION: {job: now.durations},
        metrics.JOB_BATCH_PHASE: {(*job, phase): now.phases.get(phase, 0.0) for phase in metrics.BATCH_PHASES},
        metrics.JOB_CHECKPOINT_FAILURES: {job: now.checkpoint_failures},
        metrics.JOB_SINK_UP: {},
        metrics.JOB_SINK_FAILURES: {},
        metrics.JOB_SINK_RECORDS: {},
    }
    if now.finished_at:
        found[metrics.JOB_LAST_BATCH] = {job: now.finished_at}
    for sink in (sink.name for sink in plan.spec.sinks):
        found[metrics.JOB_SINK_UP][*job, sink] = float(sink not in now.sinks_down)
        found[metrics.JOB_SINK_FAILURES][*job, sink] = now.sink_failures.get(sink, 0)
        found[metrics.JOB_SINK_RECORDS][*job, sink] = now.entry.totals.written.get(sink, 0) if now.entry else 0
    found |= _at_zero(plan, job) if now.entry is None else _from_ledger(plan, job, now.entry)
    return found


def _at_zero(plan: JobPlan, job: Labels) -> Series:
    """The counters before the first batch. A series that begins above zero shows Prometheus no increase."""
    found: Series = {}
    for topic in ((*job, source.topic) for source in plan.sources):
        for metric in (metrics.JOB_EVENTS_READ, metrics.JOB_EVENTS_ON_TIME, metrics.JOB_EVENTS_LATE_IDLE):
            _add(found, metric, topic, 0)
        _add(found, metrics.JOB_WINDOWS_MISSED, topic, 0)
        for outcome in metrics.LATE_OUTCOMES:
            _add(found, metrics.JOB_EVENTS_LATE, (*topic, outcome), 0)
        for reason in metrics.MALFORMED_REASONS:
            _add(found, metrics.JOB_EVENTS_MALFORMED, (*topic, reason), 0)
        _add(found, metrics.JOB_EVENT_LATENESS, topic, Histogram.empty(metrics.JOB_EVENT_LATENESS))
    return found


def _from_ledger(plan: JobPlan, job: Labels, entry: Entry) -> Series:
    found: Series = {
        metrics.JOB_STATE_ROWS: {job: sum(file.rows for file in entry.files)},
        metrics.JOB_STATE_BYTES: {job: sum(file.bytes for file in entry.files)},
    }
    if entry.watermark is not None:
        found[metrics.JOB_WATERMARK] = {job: entry.watermark / 1e6}
    for name, counts in entry.sources().items():
        topic = (*job, next(source.topic for source in plan.sources if source.name == name))
        _add(found, metrics.JOB_EVENTS_READ, topic, counts.read)
        _add(found, metrics.JOB_EVENTS_ON_TIME, topic, counts.on_time)
        _add(found, metrics.JOB_EVENTS_LATE_IDLE, topic, counts.late_idle)
        _add(found, metrics.JOB_WINDOWS_MISSED, topic, counts.windows_missed)
        for outcome in metrics.LATE_OUTCOMES:
            _add(found, metrics.JOB_EVENTS_LATE, (*topic, outcome), getattr(counts, outcome))
        reasons = entry.totals.reasons.get(name, {})
        for reason in metrics.MALFORMED_REASONS:
            _add(found, metrics.JOB_EVENTS_MALFORMED, (*topic, reason), reasons.get(reason, 0))
        lateness = entry.totals.lateness.get(name) or [0] * (len(metrics.JOB_EVENT_LATENESS.buckets) + 1)
        histogram = Histogram(tuple(lateness), entry.totals.lateness_sum.get(name, 0.0))
        _add(found, metrics.JOB_EVENT_LATENESS, topic, histogram)
    for one in entry.partitions:
        _add(found, metrics.JOB_EVENTS_FUTURE, (*job, one.topic, str(one.partition)), one.total.future)
    return found


def _add(found: Series, metric: Metric, labels: Labels, value: Value) -> None:
    found.setdefault(metric, {})[labels] = value
