"""What the operator costs against the real API server, beside spark-submit.

    make cluster && .venv/bin/python -m pytest -s -m bench tests/bench/bench_operator.py

Prints a table for each question. Fails on wrong figures only, never on time. MILLRACE_BENCH_FLEET_JOBS and
MILLRACE_BENCH_FLEET_TOPICS make the fleet smaller. The fleet's pods stay pending: the class of their
volumes has no provisioner.
"""

import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest
from kubernetes import client, watch
from rich.console import Console
from rich.table import Table

from millrace.kafka.clients import admin
from millrace.kafka.embedded import EmbeddedKafka
from millrace_cluster.places import places
from tests.e2e.kube import Cluster, Namespace
from tests.e2e.operating import GROUP, VERSION, install_crds, kubectl
from tests.unit.operator.worlds import spec

pytestmark = pytest.mark.bench

JOBS = int(os.environ.get("MILLRACE_BENCH_FLEET_JOBS", "1000"))
TOPICS = int(os.environ.get("MILLRACE_BENCH_FLEET_TOPICS", "10000"))
APPLIED_ALONE = 40
SUBMITTED = 3
WRITERS = 8  # at once, to fill the cluster
WINDOW = 75.0  # seconds: longer than the operator's look at the topics, so both windows hold one
LONG = 1200.0  # seconds


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    assert places().kubeconfig.exists(), "there is no cluster: run `make cluster` first"
    install_crds()
    return Cluster.connect(places().kubeconfig)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedKafka(tmp_path_factory.mktemp("broker"), heap="2g") as kafka:
        yield kafka.bootstrap


class Running:
    """A process, as the kernel tells of it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    @property
    def cpu(self) -> float:
        """Seconds of CPU so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory(self) -> int:
        """Bytes in memory now."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def operator(namespace: str, bootstrap: str, log: Path) -> Iterator[Running]:
    command = [sys.executable, "-m", "tests.bench.fleet_operator", namespace, str(places().kubeconfig), bootstrap]
    with log.open("ab") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield Running(process.pid)
        finally:
            process.terminate()
            process.wait(60)


class Fleet:
    """Many resources of one namespace."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace.name
        self._custom: Any = client.CustomObjectsApi(namespace.api)
        self.core: Any = client.CoreV1Api(namespace.api)

    def make(self, kind: str, name: str, what: dict[str, Any]) -> None:
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name}, "spec": what}
        self._custom.create_namespaced_custom_object(GROUP, VERSION, self._namespace, f"{kind.lower()}s", body)

    def make_all(self, kind: str, things: dict[str, dict[str, Any]]) -> None:
        with ThreadPoolExecutor(WRITERS) as pool:
            for done in [pool.submit(self.make, kind, name, what) for name, what in things.items()]:
                done.result()

    def list(self, plural: str) -> list[dict[str, Any]]:
        found: Any = self._custom.list_namespaced_custom_object(GROUP, VERSION, self._namespace, plural)
        return list(found["items"])

    def pods(self) -> int:
        """The drivers' pods; the API server tells how many are left out only where nothing selects among them."""
        found = self.core.list_namespaced_pod(self._namespace, limit=1)
        return len(found.items) + (found.metadata.remaining_item_count or 0)

    def release(self) -> None:
        """Takes the finalizers off, so that the namespace can go without an operator."""
        for plural in ("streamjobs", "topics"):
            names = [one["metadata"]["name"] for one in self.list(plural)]
            with ThreadPoolExecutor(WRITERS) as pool:
                list(pool.map(lambda name, plural=plural: self._free(plural, name), names))

    def _free(self, plural: str, name: str) -> None:
        body = {"metadata": {"finalizers": None}}
        self._custom.patch_namespaced_custom_object(GROUP, VERSION, self._namespace, plural, name, body)

    def versions(self) -> dict[str, str]:
        """The version of everything that a write of the operator would change."""
        found = {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in self.list("streamjobs")}
        found |= {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in self.list("topics")}
        done = subprocess.run(
            kubectl("-n", self._namespace, "get", "statefulsets,services,serviceaccounts,roles,rolebindings,pvc",
                    "-o", "jsonpath={range .items[*]}{.metadata.uid} {.metadata.resourceVersion}{\"\\n\"}{end}"),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return found | dict(line.split() for line in done.stdout.splitlines())


@contextmanager
def fleet(cluster: Cluster, name: str) -> Iterator[Fleet]:
    with cluster.namespace(name) as namespace:
        made = Fleet(namespace)
        try:
            yield made
        finally:
            made.release()


def test_from_apply_to_the_drivers_pod(cluster: Cluster, broker: str, tmp_path: Path) -> None:
    with fleet(cluster, "bench-apply") as made, operator("bench-apply", broker, tmp_path / "log"):
        _warm(made)
        took = sorted(_until_pod(made, f"alone-{number}") for number in range(APPLIED_ALONE))
    p95 = statistics.quantiles(took, n=20)[-1]
    _print(
        f"apply → driver's pod requested, {APPLIED_ALONE} jobs one after the other",
        ("median", f"{statistics.median(took):.3f} s", ""),
        ("p95", f"{p95:.3f} s", "goal: under 1 s"),
        ("longest", f"{took[-1]:.3f} s", ""),
    )


def _warm(made: Fleet) -> None:
    made.make("StreamJob", "first", spec())
    _wait("the first pod", lambda: made.pods() == 1)


def _until_pod(made: Fleet, name: str) -> float:
    stream = watch.Watch()
    events = stream.stream(
        made.core.list_namespaced_pod, "bench-apply", label_selector=f"millrace.io/job={name}", timeout_seconds=60
    )
    started = time.monotonic()
    made.make("StreamJob", name, spec())
    for _ in events:
        stream.stop()
        return time.monotonic() - started
    raise AssertionError(f"{name} got no pod in 60 s")


def test_a_fleet(cluster: Cluster, broker: str, tmp_path: Path) -> None:
    with fleet(cluster, "bench-fleet") as made:
        with operator("bench-fleet", broker, tmp_path / "log") as process:
            before = process.cpu
            made.make_all("StreamJob", {f"job-{number}": spec() for number in range(JOBS)})
            _wait(f"{JOBS} pods", lambda: made.pods() == JOBS)
            per_job = (process.cpu - before) / JOBS
        made.make_all("Topic", {f"topic-{number}": {"partitions": 1} for number in range(TOPICS)})
        started = time.monotonic()
        with operator("bench-fleet", broker, tmp_path / "log") as process:
            _wait(f"{TOPICS} topics", lambda: _topics(broker) >= TOPICS)
            created = time.monotonic() - started
            _wait("all topics Ready", lambda: all(map(_is_ready, made.list("topics"))))
            told = time.monotonic() - started
            _settle(made)
            _look_at_rest(made, process, per_job, created, told)


def _look_at_rest(made: Fleet, process: Running, per_job: float, created: float, told: float) -> None:
    idle = _spent(process, WINDOW)
    versions = made.versions()
    os.kill(process.pid, signal.SIGUSR1)
    resync = _spent(process, WINDOW)
    changed = {one for one, version in made.versions().items() if versions.get(one) != version}
    submit = _spark_submit_cpu()
    _print(
        f"{JOBS:,} StreamJobs and {TOPICS:,} Topics held by one operator",
        ("CPU for a job, from apply to its pod", f"{per_job * 1000:.0f} ms", ""),
        ("CPU of spark-submit for a job", f"{submit:.2f} s", f"{submit / per_job:.0f} times as much; goal: 50"),
        ("topics on the broker after", f"{created:.0f} s", "from the operator's start; goal: under 2 min"),
        ("all of them Ready after", f"{told:.0f} s", ""),
        ("memory", f"{process.memory / 1e6:.0f} MB", "goal: under 400 MB"),
        (f"CPU in {WINDOW:.0f} s with a resync", f"{resync:.1f} s", f"{idle:.1f} s without; goal: under 5 s more"),
        ("writes of that resync", f"{len(changed)}", f"of {len(versions):,} objects"),
    )
    assert not changed


def _spark_submit_cpu() -> float:
    """Seconds of CPU for one submission that does not wait for its pod, as people do it from a pipeline."""
    name = "bench-submit"
    subprocess.run(kubectl("create", "namespace", name), check=True, capture_output=True)
    try:
        before = _children()
        for number in range(SUBMITTED):
            subprocess.run(_submit(name, f"submitted-{number}"), check=True, capture_output=True, env=_environment())
        return (_children() - before) / SUBMITTED
    finally:
        subprocess.run(kubectl("delete", "namespace", name, "--wait=false"), check=True, capture_output=True)


def _submit(namespace: str, name: str) -> list[str]:
    server = subprocess.run(
        kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"),
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    settings = {
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.container.image": "millrace/job:dev",
        "spark.kubernetes.submission.waitAppCompletion": "false",
    }
    command = [str(Path(pyspark.__file__).parent / "bin/spark-submit"), "--master", f"k8s://{server}"]
    command += ["--deploy-mode", "cluster", "--name", name]
    command += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return [*command, "local:///opt/job.py"]


def _environment() -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(places().kubeconfig)}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _spent(process: Running, seconds: float) -> float:
    """CPU that the process took in so many seconds. This is a measurement, so it does wait for a time."""
    before = process.cpu
    time.sleep(seconds)
    return process.cpu - before


def _settle(made: Fleet) -> None:
    """Until nothing was written for a while: what follows measures a fleet with nothing to do."""
    seen: list[dict[str, str]] = []

    def is_still() -> bool:
        seen.append(made.versions())
        time.sleep(5)
        return len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]

    _wait("a fleet at rest", is_still)


def _is_ready(topic: dict[str, Any]) -> bool:
    conditions = topic.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _topics(bootstrap: str) -> int:
    return sum(name.startswith("topic-") for name in admin(bootstrap).list_topics(timeout=60).topics)


def _wait(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < deadline, f"waited {LONG:.0f} s for {what}"
        time.sleep(0.5)


def _print(title: str, *rows: tuple[str, str, str]) -> None:
    table = Table("", "", "", title=title, show_header=False)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
