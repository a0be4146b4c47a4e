"""The catalogue of metrics keeps its own rules, and snapshots become what Prometheus reads."""

import re

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from millrace import metrics
from millrace.metrics import Histogram, Metric, Snapshot
from millrace_lag.exposition import Renderer

pytestmark = pytest.mark.unit

UNITS = ("_seconds", "_bytes", "_ratio", "_total")


class Fixed(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self):  # type: ignore[no-untyped-def]
        return metrics.families(self._snapshot)


def exposed(snapshot: Snapshot) -> str:
    registry = CollectorRegistry()
    registry.register(Fixed(snapshot))
    return generate_latest(registry).decode()


@pytest.mark.parametrize("metric", metrics.ALL, ids=lambda one: one.name)
def test_every_metric_keeps_the_rules(metric: Metric) -> None:
    assert re.fullmatch(r"millrace_(job|topic|operator|observer)_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.help.endswith(".")
    assert "\n" not in metric.help
    assert len(set(metric.labels)) == len(metric.labels)
    assert bool(metric.buckets) == (metric.kind == "histogram")
    assert list(metric.buckets) == sorted(metric.buckets)
    assert not metric.name.endswith(("_ms", "_minutes", "_kb"))


def test_names_are_unique() -> None:
    assert len({one.name for one in metrics.ALL}) == len(metrics.ALL)


@pytest.mark.parametrize(
    "name",
    [
        "job_info",
        "job_phase",
        "job_lag_records",
        "job_lag_seconds",
        "job_retention_margin_seconds",
        "job_records_lost_total",
        "job_last_progress_timestamp_seconds",
        "job_batch_duration_seconds",
        "job_events_read_total",
        "job_events_on_time_total",
        "job_events_late_total",
        "job_events_malformed_total",
        "job_event_lateness_seconds",
        "job_watermark_timestamp_seconds",
        "job_state_rows",
        "job_state_bytes",
        "job_restarts_total",
        "job_slo_lag_seconds",
        "topic_info",
        "topic_ready",
        "operator_reconciliations_total",
        "operator_reconcile_duration_seconds",
        "operator_queue_depth",
    ],
)
def test_what_the_design_names_is_there(name: str) -> None:
    assert f"millrace_{name}" in {one.name for one in metrics.ALL}


def test_what_must_outlive_the_driver_is_not_the_drivers() -> None:
    needed = (metrics.JOB_LAG_SECONDS, metrics.JOB_SLO_LAG, metrics.JOB_SUSPENDED, metrics.JOB_LAST_PROGRESS)
    assert {one.exporter for one in needed} == {"observer"}


def test_a_snapshot_becomes_text() -> None:
    text = exposed(
        {
            metrics.JOB_LAG_RECORDS: {("shop", "orders", "sales", "0"): 3},
            metrics.JOB_BATCHES: {("shop", "orders"): 7},
            metrics.OPERATOR_LEADER: {(): 1},
        }
    )
    assert 'millrace_job_lag_records{job="orders",namespace="shop",partition="0",topic="sales"} 3.0' in text
    assert 'millrace_job_batches_total{job="orders",namespace="shop"} 7.0' in text
    assert "\nmillrace_operator_leader 1.0" in text


def test_a_histogram_counts_a_value_on_a_bound_below_it() -> None:
    metric = metrics.JOB_EVENT_LATENESS
    state = Histogram.empty(metric)
    for value in (1.0, 1.5, 1_000_000.0):
        state = state.observe(metric, value)
    text = exposed({metric: {("shop", "orders", "sales"): state}})
    buckets = re.findall(r'_bucket\{job="orders",le="([^"]+)".*\} (\S+)', text)
    assert buckets[:2] == [("1.0", "1.0"), ("5.0", "2.0")]
    assert buckets[-1] == ("+Inf", "3.0")
    assert "_sum" in text


@pytest.mark.parametrize(
    ("metric", "labels", "value"),
    [
        (metrics.JOB_BATCHES, ("shop",), 1.0),
        (metrics.JOB_BATCHES, ("shop", "orders"), float("nan")),
        (metrics.JOB_BATCHES, ("shop", "orders"), Histogram((1,), 1.0)),
        (metrics.JOB_BATCH_DURATION, ("shop", "orders"), 1.0),
        (metrics.JOB_BATCH_DURATION, ("shop",), Histogram.empty(metrics.JOB_BATCH_DURATION)),
        (metrics.JOB_BATCH_DURATION, ("shop", "orders"), Histogram((1, 2), 1.0)),
    ],
)
def test_a_sample_that_does_not_fit_is_refused(metric: Metric, labels: tuple[str, ...], value: float) -> None:
    with pytest.raises(TypeError, match=metric.name):
        list(metrics.families({metric: {labels: value}}))


def test_exactly_one_state_holds() -> None:
    assert metrics.one_hot(("a",), ("x", "y"), "y") == {("a", "x"): 0.0, ("a", "y"): 1.0}


def test_the_fast_text_says_the_same_as_the_library() -> None:
    snapshot: Snapshot = {
        metrics.JOB_LAG_SECONDS: {("shop", 'od"d\\na\nme', "sales", "0"): 0.1, ("shop", "b", "sales", "1"): 1e300},
        metrics.JOB_RECORDS_LOST: {("shop", "b", "sales", "1"): 12},
        metrics.JOB_CATCH_UP: {("shop", "b"): float("inf")},
        metrics.OBSERVER_JOBS_LISTED: {(): 1794989969.722},
    }
    renderer = Renderer()
    renderer.render(snapshot)
    fast = renderer.render(snapshot).decode()
    assert _samples(fast) == _samples(exposed(snapshot))
    assert 'millrace_job_catch_up_seconds{namespace="shop",job="b"} +Inf\n' in fast


def _samples(text: str) -> set[tuple[str, str, str, tuple[tuple[str, str], ...], float]]:
    return {
        (family.type, family.documentation, one.name, tuple(sorted(one.labels.items())), one.value)
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def test_the_fast_text_refuses_nan_and_histograms() -> None:
    with pytest.raises(TypeError):
        Renderer().render({metrics.JOB_CATCH_UP: {("a", "b"): float("nan")}})
    with pytest.raises(TypeError):
        Renderer().render({metrics.JOB_BATCH_DURATION: {}})
