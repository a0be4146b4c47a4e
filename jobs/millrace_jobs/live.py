"""What can change while the job runs: the spec's file is read again when it changes, and live fields take effect."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from millrace.errors import UserError
from millrace.resources.jobs import StreamJob
from millrace.resources.reading import read_files

LOOK_EVERY_SECONDS = 5.0
log = logging.getLogger(__name__)


class LiveJob:
    """The job as its file says it now. Only live fields may be read from here: all others belong to the next start."""

    def __init__(self, spec: Path, job: StreamJob) -> None:
        self._spec, self._job, self._seen = spec, job, _content(spec)

    @property
    def stalled_after_seconds(self) -> float:
        return self._job.spec.restart.stalled_after.total_seconds()

    @property
    def executors(self) -> int:
        return self._job.spec.executors.instances

    def look(self) -> bool:
        """Read the file again; whether there was something new in it that can be used."""
        content = _content(self._spec)
        if content is None or content == self._seen:
            return False
        self._seen = content
        found = _read(self._spec)
        self._job = found or self._job
        return found is not None


def watch(job: LiveJob, context: SparkContext) -> Callable[[], None]:
    """Follow the file in the background; call the answer to stop."""
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(LOOK_EVERY_SECONDS):
            before = job.executors
            if job.look() and job.executors != before:
                scale(context, job.executors)

    threading.Thread(target=follow, name="live", daemon=True).start()
    return ended.set


def scale(context: SparkContext, executors: int) -> None:
    """Ask for so many executors in all; surplus ones are let go. Without a cluster manager there is nothing to ask."""
    if not str(context.master).startswith("k8s"):
        return
    jvm, spark = context._jvm, context._jsc.sc()  # noqa: SLF001 - PySpark has no call for this
    # a companion object: Java, and so py4j, knows it only by the name that Scala's compiler gave it
    empty = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()  # type: ignore[union-attr]
    spark.requestTotalExecutors(executors, 0, empty)
    for name in _surplus(spark, executors):
        spark.killExecutor(name)
    log.info("executors: %d", executors, extra={"event": "scaled"})


def _surplus(spark: Any, wanted: int) -> list[str]:
    running = spark.getExecutorIds()
    names = [str(running.apply(index)) for index in range(running.size())]
    return sorted(names, key=int)[wanted:]


def _read(spec: Path) -> StreamJob | None:
    try:
        jobs = [resource for resource in read_files([spec]) if isinstance(resource, StreamJob)]
    except UserError as error:
        log.warning("the changed spec is not taken: %s", error, extra={"event": "spec-refused"})
        return None
    return jobs[0] if jobs else None


def _content(spec: Path) -> bytes | None:
    try:
        return spec.read_bytes()
    except OSError:
        return None  # a ConfigMap is being swapped; it is there again the next time
