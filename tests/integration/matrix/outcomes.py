"""What a job over a case left behind: its topics, its report and the ledger in its checkpoint."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.integration.matrix.topics import committed, read_topic
from tests.oracle.cases import Case
from tests.oracle.check import Observed, check
from tests.oracle.ledger import Entry

SHOWN = 25  # one fault can make hundreds of differences


def ledger_entries(checkpoint: Path) -> list[Entry]:
    """Every entry in the checkpoint, partition by partition."""
    return [entry for file in sorted((checkpoint / "ledger").glob("*.json")) for entry in _entries(file)]


def batches(checkpoint: Path) -> int:
    return len({entry.batch for entry in ledger_entries(checkpoint)})


def observe(bootstrap: str, case: Case, checkpoint: Path, report: Mapping[str, Any]) -> Observed:
    return Observed(
        read_topic(bootstrap, case.output_topic),
        read_topic(bootstrap, case.malformed_topic),
        read_topic(bootstrap, case.aside_topic) if case.aside_topic else (),
        report,
        ledger_entries(checkpoint),
    )


def assert_exact(bootstrap: str, case: Case, checkpoint: Path, report: Mapping[str, Any]) -> None:
    """Nothing lost, doubled or wrong; and the job's position is the end of the log for everyone to see."""
    found = check(case.job, case.log, observe(bootstrap, case, checkpoint, report))
    group = f"millrace.{case.resource['metadata']['namespace']}.{case.name}"
    ends = {number: len(records) for number, records in enumerate(case.log.partitions)}
    if (position := committed(bootstrap, group, case.input_topic)) != ends:
        found.append(f"the group {group} stands at {position} and should stand at {ends}")
    shown = "\n".join(found[:SHOWN])
    assert not found, f"{case.name}: {len(found)} differences\n{shown}"


def _entries(file: Path) -> Iterator[Entry]:
    entry = json.loads(file.read_text())
    for one in entry["partitions"]:
        yield Entry(entry["batch"], one["partition"], one["start"], one["end"], one["high"], one["counts"])
