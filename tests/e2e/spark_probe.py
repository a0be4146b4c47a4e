"""Runs inside a driver pod: counts on two executors, each of which also leaves a file on the shared volume."""

import json
import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

SHARED = Path("/checkpoints")
NUMBERS = 100_000


def settings() -> dict[str, str]:
    """A driver in client mode: it is a pod itself, and owns the executors that it asks for."""
    address = os.environ["POD_IP"]
    volume = "spark.kubernetes.executor.volumes.persistentVolumeClaim.checkpoints"
    return {
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.kubernetes.namespace": os.environ["POD_NAMESPACE"],
        "spark.kubernetes.driver.pod.name": os.environ["POD_NAME"],
        "spark.kubernetes.container.image": os.environ["IMAGE"],
        "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
        "spark.kubernetes.executor.podTemplateFile": "/probe/executor.json",
        "spark.kubernetes.executor.request.cores": "200m",
        "spark.kubernetes.allocation.batch.delay": "1s",
        f"{volume}.mount.path": str(SHARED),
        f"{volume}.options.claimName": os.environ["CLAIM"],
        "spark.executor.instances": "2",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "90s",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def work(numbers: Iterable[int]) -> Iterator[tuple[str, int]]:
    total = sum(numbers)
    host = socket.gethostname()
    (SHARED / host).write_text("here")
    yield host, total


def main() -> None:
    builder = SparkSession.builder.master("k8s://https://kubernetes.default.svc:443")
    for key, value in settings().items():
        builder = builder.config(key, value)
    context = builder.getOrCreate().sparkContext
    results = context.parallelize(range(NUMBERS), 8).mapPartitions(work).collect()
    report = {
        "total": sum(part for _, part in results),
        "executors": sorted({host for host, _ in results}),
        "files": sorted(path.name for path in SHARED.iterdir()),
    }
    context.stop()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
