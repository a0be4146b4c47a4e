"""The spec's file changes while the job runs: live fields are taken from it, and a broken one changes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from millrace_jobs.driver import read_job
from millrace_jobs.live import LiveJob

pytestmark = pytest.mark.unit


def write(path: Path, **spec: Any) -> None:
    made = {
        "kafka": {"bootstrapServers": "kafka:9092"},
        "sources": [{"name": "views", "topic": "views", "schema": "url string"}],
        "sinks": [{"topic": "copies"}],
    }
    body = {"apiVersion": "millrace.io/v1alpha1", "kind": "StreamJob", "metadata": {"name": "copy"}}
    path.write_text(json.dumps({**body, "spec": made | spec}))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "job.json"
    write(path, restart={"stalledAfter": "5m"})
    return path


def test_live_fields_follow_the_file(spec: Path) -> None:
    job = LiveJob(spec, read_job(spec))
    write(spec, restart={"stalledAfter": "1m"}, executors={"instances": 3})
    assert (job.stalled_after_seconds, job.executors) == (300, 1)
    assert job.look()
    assert (job.stalled_after_seconds, job.executors) == (60, 3)
    assert not job.look()


@pytest.mark.parametrize("content", ["", "{", '{"kind": "StreamJob"}'])
def test_a_file_that_cannot_be_used_changes_nothing(spec: Path, content: str) -> None:
    job = LiveJob(spec, read_job(spec))
    spec.write_text(content)
    assert not job.look()
    spec.unlink()
    assert not job.look()
    assert job.stalled_after_seconds == 300
