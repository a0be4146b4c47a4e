"""Sketches as a window's aggregates: what they say is as near to the truth as their own documentation promises."""

import random
from pathlib import Path

import pytest

from tests.integration.test_runtime import RunJob, Stage, at

pytestmark = pytest.mark.integration


def test_sketches_stay_within_the_error_that_they_state(broker: str, run_job: RunJob, tmp_path: Path) -> None:
    """Over many batches, and again when a straggler makes the window's result anew."""
    often = {"first": 1_000, "second": 600, "third": 300}
    users = [name for name, times in often.items() for _ in range(times)] + [f"u{n}" for n in range(2_100)]
    total = len(users)
    random.Random(7).shuffle(users)
    events = [{"user": user, "n": n, "at": at(n / total)} for n, user in enumerate(users)]
    sketches = {
        "distinct": "approx_count_distinct(user, 0.02)",
        "hll": "hll_sketch_estimate(hll_sketch_agg(user, 12))",
        "quantiles": "approx_percentile(n, array(0.5, 0.99), 100)",
        "kll": "kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(n), 0.5)",
        "top": "approx_top_k(user, 3, 100)",
    }
    window = {"type": "tumbling", "size": "10s", "aggregates": sketches}
    stragglers = {"policy": "correct", "allowedLateness": "1h"}
    stage = Stage(broker)
    sinks = [{"topic": f"{stage.name}-out", "key": ["window_start"]}]
    job = stage.job([{"window": window}], source={"maxRecordsPerBatch": 1_000}, sinks=sinks, stragglers=stragglers)
    stage.write([*events, {"user": "z", "at": at(100)}])
    run_job(job, tmp_path)
    stage.write([{"user": "straggler", "n": total, "at": at(5)}])
    run_job(job, tmp_path)
    first, second = stage.out()
    assert [(row["revision"], len(row["retracts"])) for row in (first, second)] == [(0, 0), (1, 1)]
    for row in (first, second):
        assert abs(row["distinct"] - 2_103) <= 3 * 0.02 * 2_103, "three times its stated standard deviation"
        assert abs(row["hll"] - 2_103) <= 3 * 1.04 / 2**6 * 2_103
        assert all(
            abs(found - part * total) <= total / 100 + 1
            for found, part in zip(row["quantiles"], (0.5, 0.99), strict=True)
        )
        assert abs(row["kll"] - total / 2) <= 0.0165 * total
        assert [one["item"] for one in row["top"]] == list(often)
        assert all(abs(one["count"] - often[one["item"]]) <= 3.5 / 256 * total for one in row["top"])
