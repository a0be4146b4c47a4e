"""What the observer knows, as metrics and as JSON. Pure: views in, values out."""

from collections.abc import Iterable, Mapping
from typing import Any

from millrace import metrics
from millrace.metrics import Labels, Metric, Value
from millrace_lag import compatible
from millrace_lag.polling import ClusterView
from millrace_lag.subjects import Subject
from millrace_lag.tracks import JobLag

Samples = dict[Metric, dict[Labels, Value]]

JOB_METRICS = tuple(one for one in metrics.ALL if one.exporter == "observer")


def snapshot(views: Iterable[ClusterView], listed_at: float, exporter_names: bool = False) -> Samples:
    """Every sample of the observer."""
    seen = tuple(views)
    samples: Samples = {metric: {} for metric in JOB_METRICS}
    samples[metrics.OBSERVER_JOBS_LISTED][()] = listed_at
    for view in seen:
        _cluster(samples, view)
        for who in view.subjects:
            _declared(samples, who)
            if who.key in view.jobs:
                _observed(samples, who, view.jobs[who.key])
    return samples | (compatible.samples(seen) if exporter_names else {})


def _cluster(samples: Samples, view: ClusterView) -> None:
    labels, health = (view.cluster,), view.health
    samples[metrics.OBSERVER_UP][labels] = int(health.up)
    samples[metrics.OBSERVER_LAST_SUCCESS][labels] = health.last_success
    samples[metrics.OBSERVER_POLL_DURATION][labels] = health.poll_seconds
    samples[metrics.OBSERVER_POLLS][*labels, "ok"] = health.polls - health.failures
    samples[metrics.OBSERVER_POLLS][*labels, "failed"] = health.failures
    samples[metrics.OBSERVER_JOBS][labels] = len(view.subjects)
    samples[metrics.OBSERVER_UNTIMED][labels] = sum(job.untimed for job in view.jobs.values())
    for question, count in health.requests.items():
        samples[metrics.OBSERVER_REQUESTS][*labels, question] = count


def _declared(samples: Samples, who: Subject) -> None:
    samples[metrics.JOB_INFO][*who.key, who.group, who.stragglers] = 1
    samples[metrics.JOB_SUSPENDED][who.key] = int(who.suspended)
    if who.slo_lag_seconds is not None:
        samples[metrics.JOB_SLO_LAG][who.key] = who.slo_lag_seconds
    if who.slo_straggler_ratio is not None:
        samples[metrics.JOB_SLO_STRAGGLERS][who.key] = who.slo_straggler_ratio


def _observed(samples: Samples, who: Subject, job: JobLag) -> None:
    records, seconds = samples[metrics.JOB_LAG_RECORDS], samples[metrics.JOB_LAG_SECONDS]
    margins, lost = samples[metrics.JOB_RETENTION_MARGIN], samples[metrics.JOB_RECORDS_LOST]
    for (topic, number), one in job.partitions.items():
        labels = (*who.key, topic, str(number))
        records[labels] = one.place.records
        seconds[labels] = one.seconds
        margins[labels] = one.margin_seconds
        lost[labels] = one.lost
    samples[metrics.JOB_VERDICT] |= metrics.one_hot(who.key, metrics.VERDICTS, job.verdict.name)
    if job.observed:
        samples[metrics.JOB_LAST_PROGRESS][who.key] = job.last_progress
        samples[metrics.JOB_CATCH_UP][who.key] = job.verdict.catch_up_seconds
    samples[metrics.JOB_OBSERVED][who.key] = job.observed


def as_json(views: Iterable[ClusterView]) -> dict[str, Any]:
    """The jobs for a program to read: the operator, or `millrace lag`."""
    return {
        "jobs": [_job(who, view, view.jobs[who.key]) for view in views for who in view.subjects if who.key in view.jobs]
    }


def _job(who: Subject, view: ClusterView, job: JobLag) -> Mapping[str, Any]:
    return {
        "namespace": who.namespace,
        "job": who.job,
        "suspended": who.suspended,
        "observed": job.observed,
        "stale": not view.health.up,
        "lagRecords": job.records,
        "lagSeconds": job.seconds,
        "retentionMarginSeconds": _finite(job.margin_seconds),
        "recordsLost": job.lost,
        "lastProgress": job.last_progress,
        "catchUpSeconds": _finite(job.verdict.catch_up_seconds),
        "verdict": job.verdict.name,
        "message": job.verdict.sentence,
        "lagHealthy": {"status": job.verdict.healthy, "reason": job.verdict.reason, "message": job.verdict.sentence},
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if value != float("inf") else None
