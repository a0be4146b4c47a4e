"""Every window type with every policy, each in five ways: the oracle's answer must come out of all of them.

One batch, many batches, a restart in the middle and a SIGKILL in the middle read the same log and must leave the very
same; a partition far ahead of the others is a log of its own.
"""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.integration.matrix.drivers import CRASH_POINTS, KILLED, Driver
from tests.integration.matrix.outcomes import assert_exact, batches
from tests.integration.matrix.topics import make_topics, read_topic, write_log
from tests.oracle.cases import Case, make_case
from tests.oracle.model import Policy, WindowType

pytestmark = pytest.mark.integration

RunJob = Callable[..., dict[str, Any]]
Cell = tuple[WindowType, Policy]
CELLS: list[Cell] = [(window, policy) for window in get_args(WindowType) for policy in get_args(Policy)]

MANY = 110  # records per batch, which makes nine batches of the log
FEW = 260  # four batches: a process that is killed and started again should not take minutes
MIDDLE = 3  # batches before the restart
# Each cell dies at another line, so that all of them are died at; the batch before it is whole.
CRASHES: dict[Cell, str] = {
    ("tumbling", "drop"): "judged:1",
    ("tumbling", "aside"): "side:2",
    ("tumbling", "correct"): "sink-after-commit:2",
    ("hopping", "drop"): "sink-begin:1",
    ("hopping", "aside"): "sink-before-commit:2",
    ("hopping", "correct"): "before-ledger:1",
    ("session", "drop"): "after-ledger:2",
    ("session", "aside"): "after-position:1",
    ("session", "correct"): "sink-after-commit:1",
    ("sliding", "drop"): "before-ledger:2",
    ("sliding", "aside"): "sink-after-commit:2",
    ("sliding", "correct"): "sink-before-commit:1",
}


def each_cell(way: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("window", "policy"), CELLS, ids=["-".join((*cell, way)) for cell in CELLS])


def prepared(broker: str, window: WindowType, policy: Policy, **options: Any) -> Case:
    """A case with a name, and so with topics and a group, of its own, and its log in the broker."""
    case = make_case(f"m{uuid.uuid4().hex[:8]}", window, policy, bootstrap=broker, **options)
    make_topics(broker, case)
    write_log(broker, case.log)
    return case


@each_cell("one")
def test_one(broker: str, run_job: RunJob, tmp_path: Path, window: WindowType, policy: Policy) -> None:
    case = prepared(broker, window, policy)
    report = run_job(case.resource, tmp_path)
    assert batches(tmp_path) == 1
    assert_exact(broker, case, tmp_path, report)


@each_cell("many")
def test_many(broker: str, run_job: RunJob, tmp_path: Path, window: WindowType, policy: Policy) -> None:
    case = prepared(broker, window, policy, max_records_per_batch=MANY)
    report = run_job(case.resource, tmp_path)
    assert batches(tmp_path) > 2 * MIDDLE
    assert_exact(broker, case, tmp_path, report)


@each_cell("ahead")
def test_ahead(broker: str, run_job: RunJob, tmp_path: Path, window: WindowType, policy: Policy) -> None:
    case = prepared(broker, window, policy, variant="ahead", max_records_per_batch=MANY)
    assert_exact(broker, case, tmp_path, run_job(case.resource, tmp_path))


@each_cell("restart")
def test_restart(broker: str, run_job: RunJob, tmp_path: Path, window: WindowType, policy: Policy) -> None:
    case = prepared(broker, window, policy, max_records_per_batch=MANY)
    run_job(case.resource, tmp_path, max_batches=MIDDLE)
    assert batches(tmp_path) == MIDDLE
    assert_exact(broker, case, tmp_path, run_job(case.resource, tmp_path))


@each_cell("kill")
def test_kill(broker: str, tmp_path: Path, window: WindowType, policy: Policy) -> None:
    case = prepared(broker, window, policy, max_records_per_batch=FEW)
    driver = Driver(case.resource, broker, tmp_path)
    code = driver.run(crash_at=CRASHES[window, policy])
    assert code == KILLED, f"it should have died at {CRASHES[window, policy]}: {code}, {driver.last_words()}"
    assert batches(driver.checkpoint) < 4
    assert_exact(broker, case, driver.checkpoint, driver.run_to_the_end())


def test_the_broker_holds_the_log_as_the_oracle_sees_it(broker: str) -> None:
    case = prepared(broker, "tumbling", "drop")
    found = sorted(read_topic(broker, case.input_topic), key=lambda one: (one.partition, one.offset))
    assert [(one.partition, one.offset, one.timestamp, one.key, one.value) for one in found] == [
        (one.partition, one.offset, one.timestamp, one.key, one.value) for one in case.log.records()
    ]


def test_every_line_is_died_at() -> None:
    assert {crash.partition(":")[0] for crash in CRASHES.values()} == set(CRASH_POINTS)
