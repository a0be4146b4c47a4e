"""Two operators: one acts, the other takes over within 20 s when the first is killed, and nothing is done twice."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kube import Namespace
from tests.e2e.operating import Resources, install_crds, operator
from tests.e2e.test_streamjob_causes import job

pytestmark = pytest.mark.e2e

SUSPENDED: dict[str, Any] = {"suspend": True}  # objects without pods: the machine has better things to run


@pytest.fixture(scope="module")
def resources(namespace: Namespace) -> Iterator[Resources]:
    install_crds()
    yield Resources(namespace)
    Resources(namespace).release()


def has_driver(resources: Resources, name: str) -> bool:
    found = resources.apps.list_namespaced_stateful_set(resources.name).items
    return f"{name}-driver" in {one.metadata.name for one in found}


def test_the_second_takes_over_when_the_first_is_killed(resources: Resources, tmp_path: Path) -> None:
    with operator(resources.name, tmp_path / "first") as first, operator(resources.name, tmp_path / "second") as second:
        resources.create(job("before", "kafka:9092", **SUSPENDED))
        took = resources.wait("the first job's objects", lambda: has_driver(resources, "before"), 30)
        leading, waiting = (first, second) if "leader" in (tmp_path / "first").read_text() else (second, first)
        generation = resources.apps.read_namespaced_stateful_set("before-driver", resources.name).metadata.generation

        leading.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        resources.create(job("after", "kafka:9092", **SUSPENDED))
        resources.wait("the second operator", lambda: has_driver(resources, "after"), 30)
        failover = time.monotonic() - killed
        assert failover < 20
        assert waiting.poll() is None
        found = resources.apps.read_namespaced_stateful_set("before-driver", resources.name).metadata
        assert found.generation == generation  # what was done is not done again
        print(f"first job {took:.1f} s (with the operator's start), failover {failover:.1f} s")


def test_an_operator_that_is_asked_to_stop_hands_over_at_once(resources: Resources, tmp_path: Path) -> None:
    with operator(resources.name, tmp_path / "first") as first:
        resources.wait("a leader", lambda: "leader:" in (tmp_path / "first").read_text(), 40)
        with operator(resources.name, tmp_path / "second"):
            first.terminate()
            asked = time.monotonic()
            resources.wait("the next leader", lambda: "leader:" in (tmp_path / "second").read_text(), 20)
            assert time.monotonic() - asked < 10


def test_many_jobs_are_made_in_a_moment_each(resources: Resources, tmp_path: Path) -> None:
    names = [f"many-{number}" for number in range(30)]
    with operator(resources.name, tmp_path / "log"):
        resources.wait("a leader", lambda: "leader:" in (tmp_path / "log").read_text(), 40)
        resources.create(job("first", "kafka:9092", **SUSPENDED))
        resources.wait("the watch", lambda: has_driver(resources, "first"), 30)
        started = time.monotonic()
        for name in names:
            resources.create(job(name, "kafka:9092", **SUSPENDED))
        resources.wait("all of them", lambda: all(has_driver(resources, name) for name in names), 60)
        print(f"30 jobs with 7 objects each: {time.monotonic() - started:.1f} s")
        for name in [*names, "first", "before", "after"]:
            resources.delete("StreamJob", name)
        resources.wait("all to go", lambda: not any(resources.exists("StreamJob", name) for name in names), 60)
