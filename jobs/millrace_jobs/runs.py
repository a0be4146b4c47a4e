"""A job's life in one process: start, batches, waiting out what is away, and stopping at a batch boundary."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from millrace import naming
from millrace.errors import UserError
from millrace.resources.jobs import StreamJob
from millrace.resources.sinks import Sink
from millrace_jobs.checkpoints import open_checkpoint
from millrace_jobs.engine import Engine, Outlets
from millrace_jobs.failures import Failure, explain
from millrace_jobs.intake import Role
from millrace_jobs.ledger import Entry
from millrace_jobs.logins import Login
from millrace_jobs.offsets import Positions
from millrace_jobs.plans import compile_job
from millrace_jobs.sinks.kafka import KafkaTarget
from millrace_jobs.sinks.outlets import Outlet
from millrace_jobs.sinks.postgres import PostgresTarget, as_rows
from millrace_jobs.sinks.rows import as_records
from millrace_jobs.sinks.slots import Target
from millrace_jobs.sources import stream
from millrace_jobs.status import Status

MOST_SLOTS = 8
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 30.0
UNKNOWN_TRIES = 3  # a failure that nobody can name is tried so often before the job gives up
log = logging.getLogger(__name__)


class StopRequestedError(Exception):
    """Raised at a batch boundary to end the query; not a failure."""


@dataclass(frozen=True)
class Surroundings:
    """What a job runs in: brokers, where Secrets come from, and the folder of the brokers' own, if they ask for one."""

    bootstrap: str
    environment: Mapping[str, str] = field(default_factory=dict)
    auth: Path | None = None


class JobRun:
    """Runs one job until it is stopped, has caught up, or cannot go on."""

    def __init__(
        self,
        spark: SparkSession,
        job: StreamJob,
        checkpoint: str,
        around: Surroundings,
        status_file: str | None = None,
        ready: Callable[["JobRun"], None] = lambda _: None,
    ) -> None:
        self._spark, self._job, self._around = spark.newSession(), job, around
        self._spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
        self.plan = compile_job(self._spark, job)
        self._checkpoint = open_checkpoint(checkpoint, job)
        self.status = Status(self.plan, status_file)
        group = naming.consumer_group(self.plan.namespace, self.plan.name)
        self._login = Login(around.bootstrap, around.auth)
        self._positions = Positions(around.bootstrap, group, self._login.security)
        slots = min(MOST_SLOTS, spark.sparkContext.defaultParallelism)
        self._engine = Engine(
            self._spark, self.plan, self._checkpoint.folder, self._outlets(), self._positions, slots, self._batch_done
        )
        self._stop, self._gate = threading.Event(), threading.Lock()
        self._failure: BaseException | None = None
        self._moved_at = time.monotonic()
        self._left: int | None = None
        self.status.update(entry=self._engine.last)
        ready(self)

    def run(self, until_caught_up: bool = False, max_batches: int | None = None) -> Failure | None:
        """Run to the end; returns why the job gave up, or None when it was asked to stop or has caught up."""
        self._left = max_batches
        wait, unknown = FIRST_WAIT_SECONDS, 0
        while True:
            done_before = self.status.now.batches
            failure = self._run_once(until_caught_up)
            if failure is None and self._login.is_old and not self._stop.is_set():
                continue
            if failure is None:
                self.status.update(state="stopped", failure=None, sinks_down=frozenset())
                return None
            if self.status.now.batches > done_before:
                wait, unknown = FIRST_WAIT_SECONDS, 0
            unknown += failure.blame == "unknown"
            final = failure.blame in ("spec", "user-code") or unknown >= UNKNOWN_TRIES
            self.status.failed(failure, final)
            log.error(failure.message, extra={"cause": failure.cause, "event": "gave-up" if final else "waits"})
            if final or self._stop.wait(wait):
                return failure if final else None
            wait = min(LONGEST_WAIT_SECONDS, 2 * wait)

    def request_stop(self) -> None:
        """End at the next batch boundary. Safe in a signal handler: it only sets a flag."""
        self._stop.set()

    def health(self, stalled_after_seconds: float) -> tuple[bool, str]:
        """Whether the job moves: a batch was done, or there was none to do, not too long ago."""
        quiet = time.monotonic() - self._moved_at
        if quiet <= stalled_after_seconds:
            return True, "batches advance"
        failure = self.status.now.failure
        return False, f"no batch was done for {quiet:.0f} s" + (f": {failure.message}" if failure else "")

    def close(self) -> None:
        self._positions.close()

    def _run_once(self, until_caught_up: bool) -> Failure | None:
        self._failure = None
        query: StreamingQuery | None = None
        try:
            query = self._start(until_caught_up)
            self.status.update(state="running")
            self._await(query)
        except StopRequestedError:
            return None
        except PySparkException as error:
            return self._login.blame(self._explain(error))
        except (UserError, OSError) as error:
            return explain(error)
        finally:
            if query is not None and query.isActive:
                query.stop()
        return None

    def _start(self, until_caught_up: bool) -> StreamingQuery:
        spec, sources = self._job.spec, self._job.spec.sources
        parallelism = self._spark.sparkContext.defaultParallelism
        if self._login.renew():
            self._positions.renew(self._login.security)
        records = stream(self._spark, sources, self._around.bootstrap, self._login.java_settings(), parallelism)
        writer = records.writeStream.foreachBatch(self._batch).option(
            "checkpointLocation", self._checkpoint.folder.at("spark")
        )
        millis = int(spec.trigger.interval.total_seconds() * 1000)
        writer = (
            writer.trigger(availableNow=True)
            if until_caught_up
            else writer.trigger(processingTime=f"{millis} milliseconds")
        )
        return writer.queryName(naming.job_key(self.plan.namespace, self.plan.name)).start()

    def _await(self, query: StreamingQuery) -> None:
        while not query.awaitTermination(0.5):  # type: ignore[arg-type]  # seconds may be a fraction
            status = query.status
            if not status["isTriggerActive"] and not status["isDataAvailable"]:
                self._moved_at = time.monotonic()  # nothing to do is as good as done
            if self._stop.is_set() or self._login.look():
                with self._gate:  # the batch that is inside ends first; whichever comes after sees the flag and ends
                    pass
                # Not within the gate: Spark waits here for its thread, which may just have come to the gate itself.
                query.stop()
                return

    def _batch(self, records: DataFrame, number: int) -> None:
        """Spark calls this in a thread of its own; what is raised here ends the query."""
        with self._gate:
            try:
                if self._stop.is_set() or self._left == 0 or self._login.is_old:
                    raise StopRequestedError
                self._engine.run(records, number)
            except BaseException as error:
                self._failure = error
                raise

    def _batch_done(self, entry: Entry) -> None:
        if self._left is not None:
            self._left -= 1
        self._moved_at = time.monotonic()
        self.status.batch_done(entry)
        log.info("batch done", extra={"event": "batch", "batch": entry.batch, "seconds": sum(entry.seconds.values())})

    def _explain(self, error: PySparkException) -> Failure | None:
        """Spark wraps what our batch raised in a text of its own; the exception itself tells more."""
        if isinstance(self._failure, StopRequestedError):
            return None
        return explain(self._failure if self._failure is not None else error)

    def _outlets(self) -> Outlets:
        side: dict[Role, Target] = {}
        if self._job.spec.malformed is not None:
            side["malformed"] = self._topic(self._job.spec.malformed.topic, exactly_once=True)
        if self._job.spec.stragglers.policy == "aside" and self._job.spec.stragglers.topic is not None:
            side["aside"] = self._topic(self._job.spec.stragglers.topic, exactly_once=True)
        return Outlets(tuple(self._outlet(sink) for sink in self._job.spec.sinks), side)

    def _outlet(self, sink: Sink) -> Outlet:
        exactly_once = sink.delivery == "exactly-once"
        if sink.topic is not None:
            by = F.coalesce(F.col("key"), F.col("value"))
            return Outlet(
                sink.name,
                lambda rows, gone: as_records(rows, sink.key_columns, gone),
                by,
                self._topic(sink.topic, exactly_once),
            )
        if sink.postgres is None:
            raise UserError("spec.sinks: a sink must be a topic or a table.")
        target = PostgresTarget.of(
            naming.job_key(self.plan.namespace, self.plan.name),
            self._checkpoint.state,
            sink.postgres,
            self.plan.result,
            self._around.environment,
            exactly_once,
        )
        return Outlet(sink.name, as_rows, target.by(), target)

    def _topic(self, topic: str, exactly_once: bool) -> KafkaTarget:
        return KafkaTarget(
            bootstrap=self._around.bootstrap,
            auth=str(self._around.auth or ""),
            namespace=self.plan.namespace,
            job=self.plan.name,
            state=self._checkpoint.state,
            topic=topic,
            exactly_once=exactly_once,
        )
