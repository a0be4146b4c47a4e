"""A broker, or a database, that goes away under a running job: it waits, says so, loses nothing and doubles nothing."""

import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millrace.kafka.embedded import EmbeddedKafka
from millrace.local.processes import Child
from tests.integration.matrix.drivers import Driver
from tests.integration.postgres import running_server
from tests.integration.test_runtime import Stage, at

pytestmark = pytest.mark.integration

SECONDS = 180.0
WINDOW = {"type": "tumbling", "size": "10s", "by": ["user"], "aggregates": {"n": "count(*)"}}


def wait_for(condition: Callable[[], bool], what: str, driver: Driver) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited {SECONDS} s for {what}: {driver.status()}\n{driver.last_words()}"
        time.sleep(0.2)


def read(driver: Driver) -> int:
    return int(driver.status().get("sources", {}).get("views", {}).get("read", 0))


def metric(driver: Driver, name: str) -> float:
    address = f"http://127.0.0.1:{driver.status()['metrics_port']}/metrics"
    with urllib.request.urlopen(address, timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line for line in lines if line.startswith(name + "{")).rpartition(" ")[2])


def stop_gently(child: Child) -> None:
    assert child.stop() == 0, "SIGTERM ends a job at a batch boundary, with exit code 0"


def counted(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return sorted((row["window_start"], row["n"]) for row in rows)


def test_a_broker_that_goes_away_delays_and_loses_nothing(tmp_path: Path) -> None:
    first = EmbeddedKafka(tmp_path / "broker")
    first.start()
    bootstrap = first.bootstrap
    stage = Stage(bootstrap)
    driver = Driver(stage.job([{"window": WINDOW}]), bootstrap, tmp_path)
    child = driver.start(until_caught_up=False)
    try:
        stage.write([{"user": "a", "at": at(n)} for n in range(25)])
        wait_for(lambda: read(driver) == 25, "the first events", driver)
        first.stop()
        wait_for(lambda: driver.status().get("state") == "waiting", "the job to say that it waits", driver)
        assert driver.status()["cause"] in ("BrokerUnreachable", "SinkUnavailable")
        with EmbeddedKafka(tmp_path / "broker", port=int(bootstrap.rpartition(":")[2])):
            stage.write([{"user": "a", "at": at(n)} for n in range(25, 60)])
            wait_for(lambda: read(driver) == 60, "what came after the outage", driver)
            assert driver.status()["state"] == "running"
            expected = [(f"2026-01-01T00:00:{tens}0.000000Z", 10) for tens in range(5)]
            assert counted(stage.out()) == expected
            stop_gently(child)
    finally:
        child.stop()
        first.stop()


def test_a_database_that_goes_away_delays_and_loses_nothing(broker: str, tmp_path: Path) -> None:
    with running_server() as server:
        stage = Stage(broker)
        table = f"t_{stage.name}"
        sink = {"postgres": {"secret": {"name": "db"}, "table": table, "key": ["user", "window_start"]}}
        job = stage.job([{"window": WINDOW}], sinks=[sink])
        driver = Driver(job, broker, tmp_path, {"MILLRACE_SECRET_DB": server.url})
        child = driver.start(until_caught_up=False)
        try:
            stage.write([{"user": "a", "at": at(n)} for n in range(25)])
            wait_for(lambda: read(driver) == 25, "the first events", driver)
            server.stop()
            stage.write([{"user": "a", "at": at(n)} for n in range(25, 60)])
            wait_for(lambda: driver.status().get("cause") == "SinkUnavailable", "the job to name its sink", driver)
            assert metric(driver, "millrace_job_sink_up") == 0
            assert metric(driver, "millrace_job_sink_failures_total") >= 1
            server.start()
            wait_for(lambda: read(driver) == 60, "what came during the outage", driver)
            assert metric(driver, "millrace_job_sink_up") == 1
            with server.connect() as connection:
                rows = connection.execute(f"SELECT window_start, n FROM {table} ORDER BY 1").fetchall()  # noqa: S608
            assert [n for _, n in rows] == [10, 10, 10, 10, 10]
            stop_gently(child)
        finally:
            child.stop()
