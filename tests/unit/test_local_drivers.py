"""How a driver is called, and what is made of what it leaves behind."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from millrace.local.drivers import DriverSettings, driver_command, driver_environment, last_words
from millrace.local.state import JobPaths, StateFolder
from millrace.local.statuses import Counts, JobStatus, parse_status, read_json

pytestmark = pytest.mark.unit

STATUS: dict[str, Any] = {
    "namespace": "shop",
    "job": "visits",
    "state": "waiting",
    "cause": "SinkUnavailable",
    "message": "Topic out: no broker answers.",
    "batch": 7,
    "batch_seconds": 1.5,
    "metrics_port": 9100,
    "sources": {
        "a": {"topic": "t", "read": 10, "malformed": 1, "future": 1, "on_time": 5, "late": 3, "dropped": 1, "aside": 2},
        "b": {"topic": "u", "read": 4, "on_time": 4},
    },
    "sinks": {"out": {"written": 6, "up": False}, "other": {"written": 1, "up": True}},
}


@pytest.fixture
def paths(tmp_path: Path) -> JobPaths:
    return StateFolder(tmp_path).job("shop", "visits")


def test_the_driver_is_called_as_agreed(paths: JobPaths) -> None:
    command = driver_command(paths, DriverSettings("localhost:9092"), metrics_port=0)
    assert command[0] == sys.executable
    assert command[command.index("-m") + 1] == "millrace_jobs"
    options = dict(zip(command[4::2], command[5::2], strict=True))
    assert options["--bootstrap"] == "localhost:9092"
    assert options["--checkpoint"] == str(paths.checkpoint)
    assert options["--metrics-port"] == "0"
    assert "--until-caught-up" not in command


def test_until_caught_up_is_passed_on(paths: JobPaths) -> None:
    assert "--until-caught-up" in driver_command(paths, DriverSettings("h:1", until_caught_up=True), 0)


def test_code_beside_the_spec_is_found_first(tmp_path: Path) -> None:
    env = driver_environment({"HOME": "/h", "PYTHONPATH": "/mine"}, (tmp_path,))
    assert env == {"HOME": "/h", "PYTHONPATH": f"{tmp_path}:/mine"}


def test_a_status_is_read_with_its_totals(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text(json.dumps(STATUS))
    status = parse_status(read_json(tmp_path / "status.json"))
    assert (status.state, status.cause, status.batch, status.batch_seconds) == ("waiting", "SinkUnavailable", 7, 1.5)
    assert status.counts == Counts(read=14, malformed=1, future=1, on_time=9, late=3, dropped=1, aside=2)
    assert (status.out, status.sinks_down) == (7, ("out",))


@pytest.mark.parametrize("content", [None, "", "[]", '{"half'])
def test_no_status_yet_is_a_job_that_starts(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "status.json").write_text(content)
    assert parse_status(read_json(tmp_path / "status.json")) == JobStatus()


@pytest.mark.parametrize(
    ("counts", "holds"),
    [
        (Counts(read=5, malformed=1, future=1, on_time=1, late=2, dropped=1, aside=1), True),
        (Counts(read=5, malformed=1, on_time=3), False),
        (Counts(read=2, late=2, dropped=1), False),
    ],
)
def test_the_equation_of_the_ledger(counts: Counts, holds: bool) -> None:
    assert counts.adds_up is holds


def test_the_last_cause_in_a_log_explains_the_end(tmp_path: Path) -> None:
    log = tmp_path / "driver.log"
    lines = ['{"cause": "First", "message": "a"}', '{"cause": "Last", "message": "b"}', "WARN something", '{"x": 1}']
    log.write_text("\n".join(lines))
    assert last_words(log)["cause"] == "Last"
    assert last_words(tmp_path / "none") == {}
