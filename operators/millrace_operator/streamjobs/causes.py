"""Why a job does not move, in one word and one sentence: the first thing that explains the rest.

The words are stable: alerts, events and people's scripts name them.
"""

from dataclasses import dataclass
from datetime import timedelta

from millrace_operator.desired.target import Target
from millrace_operator.settings import Patience
from millrace_operator.streamjobs.failures import Record
from millrace_operator.streamjobs.state import Observed, Pod

IMAGE = frozenset(["ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"])
PROOF = timedelta(seconds=60)
CONFIG = frozenset(["CreateContainerConfigError", "CreateContainerError", "RunContainerError"])


@dataclass(frozen=True)
class Cause:
    reason: str
    message: str


def find(observed: Observed, target: Target, record: Record, patience: Patience) -> Cause | None:
    """The cause, or None while nothing is wrong (or not for long enough)."""
    if observed.refusals:
        return Cause("ObjectRefused", observed.refusals[0])
    if record.given_up and record.code != 0:
        return Cause(record.cause, f"Given up after {record.row} failures in a row; the last one: {record.message}")
    driver = observed.driver
    if driver is None:
        return _no_pod(observed, record)
    return (
        _pod(driver, "driver", observed) or _failing(driver, record, observed) or _running(observed, target, patience)
    )


def _no_pod(observed: Observed, record: Record) -> Cause | None:
    for complaint in observed.complaints:
        if "exceeded quota" in complaint:
            return Cause("QuotaExceeded", f"The namespace's quota leaves no room for the driver: {complaint}")
    if observed.complaints:
        return Cause("PodRefused", f"Kubernetes could not make the driver's pod: {observed.complaints[0]}")
    return _last_failure(record) if record.row else None


def _pod(pod: Pod, role: str, observed: Observed) -> Cause | None:
    """What keeps a pod's container from starting at all."""
    if pod.waiting in IMAGE:
        return Cause("ImageCannotBePulled", f"The {role}'s image cannot be pulled: {pod.waiting_message}")
    if pod.waiting in CONFIG:
        return Cause("ConfigMissing", f"The {role}'s container cannot be made: {pod.waiting_message}")
    if pod.unschedulable is not None:
        if "PersistentVolumeClaim" in pod.unschedulable or "persistentvolumeclaim" in pod.unschedulable:
            return Cause("VolumeNotBound", f"The job's volume is not there: {pod.unschedulable}")
        return Cause("Unschedulable", f"No node takes the {role}: {pod.unschedulable}")
    if pod.running_since is None and pod.ended is None and observed.complaints:
        return Cause("PodCannotStart", f"The {role}'s pod cannot start: {observed.complaints[0]}")
    return None


def _failing(driver: Pod, record: Record, observed: Observed) -> Cause | None:
    """Ended by itself, and not seen to move since."""
    if record.row and not is_moving(observed, record):  # it stays the cause until the job moves again
        return _last_failure(record)
    if driver.running_since is None and driver.ended is not None and driver.ended.code != 0:
        return _last_failure(record)
    return None


def _last_failure(record: Record) -> Cause | None:
    return Cause(record.cause, record.message) if record.cause and record.code != 0 else None


def _running(observed: Observed, target: Target, patience: Patience) -> Cause | None:
    progress = observed.progress
    if progress is not None and progress.cause:
        return Cause(progress.cause, progress.message or progress.cause)
    missing = _executors(observed, target, patience)
    if missing is None and is_hung(observed, target):
        return no_progress(observed)
    return missing


def no_progress(observed: Observed) -> Cause:
    told = (
        "answers, but no batch was finished" if _answers(observed) else "does not answer, and its position stood still"
    )
    return Cause("NoProgress", f"The driver {told} for {int(_silent(observed).total_seconds())} s.")


def is_hung(observed: Observed, target: Target) -> bool:
    """Whether a driver that runs has shown no movement for longer than its spec allows."""
    driver = observed.driver
    if driver is None or driver.deleting or driver.running_since is None:
        return False
    progress = observed.progress
    if progress is None or progress.cause:  # a driver that names a cause tries again by itself
        return False
    return progress.healthy is False or _silent(observed) >= target.job.spec.restart.stalled_after


def is_moving(observed: Observed, record: Record) -> bool:
    """Running means moving: batches advance, or there is nothing to do.

    A driver that failed before, or never finished a batch, must prove it: by a batch, by having nothing to read, or by
    running well for a while. Else a job that fails with every start would look well in between.
    """
    driver, progress = observed.driver, observed.progress
    if driver is None or driver.deleting or driver.running_since is None or progress is None or progress.cause:
        return False
    if progress.state != "running" or progress.healthy is False:
        return False
    if progress.batch is not None and not record.row:
        return True
    idle = observed.lag is not None and observed.lag.records == 0
    works = any(pod.running_since for pod in observed.executors)
    return progress.moved or (works and (idle or observed.now - driver.running_since >= PROOF))


def _silent(observed: Observed) -> timedelta:
    """How long nothing was seen to move; a driver that waits for data moves."""
    progress, driver = observed.progress, observed.driver
    if progress is None or progress.advanced is None or driver is None or driver.running_since is None:
        return timedelta()
    return observed.now - max(progress.advanced, driver.running_since)


def _answers(observed: Observed) -> bool:
    return observed.progress is not None and observed.progress.told_by == "driver"


def _executors(observed: Observed, target: Target, patience: Patience) -> Cause | None:
    wanted = target.job.spec.executors.instances
    up = [pod for pod in observed.executors if pod.running_since is not None]
    driver = observed.driver
    if len(up) >= wanted or driver is None or driver.running_since is None:
        return None
    waiting = [pod for pod in observed.executors if pod.running_since is None]
    since = min([pod.created for pod in waiting], default=driver.running_since)
    allowed = patience.executors if waiting else patience.start
    if observed.now - max(since, driver.running_since) < allowed:
        return None
    why = next((cause for pod in waiting if (cause := _pod(pod, "executor", observed))), None)
    hint = f" {why.message}" if why else ""
    return Cause("ExecutorsMissing", f"{len(up)} of {wanted} executors run.{hint}")
