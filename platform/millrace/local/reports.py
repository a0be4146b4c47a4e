"""The report of a run: one JSON object for all its jobs, the same shape for one job as for many."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from millrace.errors import UserError
from millrace.local.drivers import Driver
from millrace.local.statuses import read_json


def make_report(drivers: Sequence[Driver]) -> dict[str, Any]:
    return {"jobs": {driver.name: _job(driver) for driver in drivers}}


def write_report(path: Path, report: Mapping[str, Any]) -> None:
    try:
        path.write_text(json.dumps(report, indent=2) + "\n")
    except OSError as error:
        raise UserError(f"The report cannot be written to {path} ({error.strerror}): name another file.") from error


def _job(driver: Driver) -> dict[str, Any]:
    """What the driver said last, with how it ended. A driver that was killed leaves its last status."""
    said = read_json(driver.paths.report) or read_json(driver.paths.status)
    failure = driver.failure()
    ending = {"state": "failed", "cause": failure.cause, "message": failure.message} if failure else {}
    return {**said, **ending, "exit_code": driver.exit_code(), "log": str(driver.paths.log)}
