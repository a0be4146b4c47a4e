"""What the end-to-end tests share: a real cluster, brought up once, and a namespace for every test module."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from millrace_cluster import state
from millrace_cluster.places import places
from tests.e2e.kube import Cluster, Namespace

REPOSITORY = Path(__file__).resolve().parents[2]


def _run(command: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "platform/cluster")}
    subprocess.run([sys.executable, "-m", "millrace_cluster", command], env=environment, check=True)


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """The cluster. One that is up already is used as it is, brought up to date, and left up."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    was_up = state.load(places().state) is not None
    with capture.global_and_fixture_disabled():  # bringing it up takes minutes the first time, and says so
        print()
        _run("up")
    try:
        yield Cluster.connect(places().kubeconfig)
    finally:
        if not was_up:
            with capture.global_and_fixture_disabled():
                print()
                _run("down")


@pytest.fixture(scope="module")
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace that enforces the strictest of Kubernetes' pod security standards, named after the test module."""
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_").replace("_", "-")
    with cluster.namespace(f"e2e-{name}") as made:
        yield made
