"""What the integration tests share: one real broker and one Spark session for all of them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from millrace.kafka.embedded import EmbeddedKafka
from millrace.resources.jobs import StreamJob
from millrace.resources.reading import parse_object
from millrace_jobs.runs import JobRun, Surroundings
from millrace_jobs.session import build_session

# Tests are short: compiling their JVMs' code twice would cost more than it gains. Holds for every JVM started here.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

RunJob = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap servers of a real Kafka. Tests keep apart by topic, job and group names of their own."""
    with EmbeddedKafka(tmp_path_factory.mktemp("broker")) as kafka:
        yield kafka.bootstrap


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = build_session("tests", extra={"spark.sql.warehouse.dir": str(warehouse)})
    yield session
    session.stop()


@pytest.fixture
def run_job(spark: SparkSession, broker: str) -> RunJob:
    """Runs a resource to its end in this process and returns its report."""

    def run(
        resource: dict[str, Any],
        checkpoint: Path,
        *,
        until_caught_up: bool = True,
        max_batches: int | None = None,
        environment: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        job = parse_object(resource)
        assert isinstance(job, StreamJob)
        one = JobRun(spark, job, str(checkpoint), Surroundings(broker, environment or {}))
        failure = one.run(until_caught_up=until_caught_up, max_batches=max_batches)
        one.close()
        assert failure is None, failure
        return one.status.as_json()

    return run
