"""What a job's failures add up to: when it is started again, and when it is left alone because it would fail again.

The record lives in the resource's status, so that it outlives the operator. Kubernetes itself restarts a container at
once; that is the first restart. Each further one in a row waits, and the job is held meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from millrace.resources.runs import Restart
from millrace_operator.actions import Manifest
from millrace_operator.streamjobs.state import Ended, Pod, format_time, parse_time

OWN_CODES = frozenset([2, 3])  # bad spec or checkpoint that does not fit; the user's code raised
NAMES = {2: "SpecRefused", 3: "UserCodeRaised"}
MESSAGE_LENGTH = 1000
ENDED = "Ended"


@dataclass(frozen=True)
class Record:
    """The failures so far."""

    version: str = ""
    """The edit they belong to: an edit, or a restart by hand, is a new chance."""
    total: int = 0
    row: int = 0
    """In a row, without a stable run in between."""
    own: int = 0
    """Those of the row that the job's own code or spec caused."""
    seen: str = ""
    cause: str = ""
    message: str = ""
    code: int | None = None
    at: datetime | None = None
    retry: datetime | None = None
    given_up: bool = False
    causes: Mapping[str, int] = field(default_factory=dict)

    def holds(self, now: datetime) -> bool:
        """Whether the driver must not run now."""
        return self.given_up or (self.retry is not None and now < self.retry)


def cause_of(ended: Ended) -> str:
    """A stable word for how the driver ended: its own, where it left one."""
    if ended.cause:
        return ended.cause
    if ended.reason == "OOMKilled":
        return "OutOfMemory"
    if ended.code in NAMES:
        return NAMES[ended.code]
    if ended.code == 137:
        return "Killed"
    return ended.reason if ended.reason == "Evicted" else "DriverFailed"


def message_of(ended: Ended) -> str:
    if ended.message:
        return ended.message[-MESSAGE_LENGTH:]
    if ended.code == 137:
        return "The driver was killed (exit code 137), most likely for its memory: raise driver.memory."
    return f"The driver ended with exit code {ended.code} and left no message; see the logs of its pod."


def renew(record: Record, version: str, driver: Pod | None, policy: Restart, now: datetime) -> Record:
    """The record with what the driver's pod shows now."""
    if version != record.version:
        record = replace(record, version=version, row=0, own=0, retry=None, given_up=False)
    if driver is None or driver.deleting:
        return record
    if driver.ended is not None and driver.ended.key != record.seen:
        return _failed(record, driver.ended, policy)
    if driver.running_since is not None and now - driver.running_since >= policy.stable_after:
        return replace(record, row=0, own=0, retry=None)
    return record


def hung(record: Record, driver: Pod, policy: Restart, now: datetime, message: str) -> Record:
    """The record of a driver that is taken as hung."""
    return _failed(record, Ended(1, "", now, "NoProgress", message, timedelta()), policy)


def _failed(record: Record, ended: Ended, policy: Restart) -> Record:
    before = replace(record, row=0, own=0) if ended.ran >= policy.stable_after else record
    if ended.code == 0:
        return _finished(before, ended, policy)
    cause = cause_of(ended)
    row, own = before.row + 1, before.own + (ended.code in OWN_CODES)
    return replace(
        before,
        total=before.total + 1,
        row=row,
        own=own,
        seen=ended.key,
        cause=cause,
        message=message_of(ended),
        code=ended.code,
        at=ended.at,
        retry=ended.at + wait(policy, row) if row > 1 else None,
        given_up=policy.policy == "Never" or own >= policy.max_failures,
        causes={**before.causes, cause: before.causes.get(cause, 0) + 1},
    )


def _finished(record: Record, ended: Ended, policy: Restart) -> Record:
    """Exit code 0 without being asked: an end, unless the job is always to run."""
    done = policy.policy != "Always"
    return replace(record, seen=ended.key, cause=ENDED, message="", code=0, at=ended.at, given_up=done)


def wait(policy: Restart, row: int) -> timedelta:
    """How long before the restart after so many failures in a row; the first comes at once."""
    if row < 2:
        return timedelta()
    doubled: timedelta = policy.backoff * 2 ** min(row - 2, 30)
    return min(doubled, policy.max_backoff)


def to_status(record: Record) -> Manifest:
    """As it stands in the resource's status."""
    if not record.total and not record.seen:
        return {"total": 0, "version": record.version}
    shown: Manifest = {
        "total": record.total,
        "inARow": record.row,
        "own": record.own,
        "version": record.version,
        "seen": record.seen,
        "cause": record.cause,
        "message": record.message,
        "givenUp": record.given_up,
        "causes": dict(record.causes),
    }
    if record.code is not None:
        shown["exitCode"] = record.code
    if record.at is not None:
        shown["at"] = format_time(record.at)
    if record.retry is not None:
        shown["retryAt"] = format_time(record.retry)
    return shown


def from_status(status: Manifest) -> Record:
    kept = status.get("failures") or {}
    return Record(
        version=kept.get("version", ""),
        total=kept.get("total", 0),
        row=kept.get("inARow", 0),
        own=kept.get("own", 0),
        seen=kept.get("seen", ""),
        cause=kept.get("cause", ""),
        message=kept.get("message", ""),
        code=kept.get("exitCode"),
        at=parse_time(kept["at"]) if kept.get("at") else None,
        retry=parse_time(kept["retryAt"]) if kept.get("retryAt") else None,
        given_up=kept.get("givenUp", False),
        causes=kept.get("causes") or {},
    )
