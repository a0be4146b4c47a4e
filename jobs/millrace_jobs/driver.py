"""The driver process of one job: arguments in, exit code out. Nothing in here knows whether Kubernetes is there."""

import argparse
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry

from millrace.errors import UserError
from millrace.resources.jobs import StreamJob
from millrace.resources.reading import read_files
from millrace_jobs import crashes, live
from millrace_jobs.exposition import JobCollector
from millrace_jobs.failures import Failure, explain
from millrace_jobs.logs import start_logging
from millrace_jobs.runs import JobRun, Surroundings
from millrace_jobs.session import build_session
from millrace_jobs.steps import UserCodeError
from millrace_jobs.web import Pages, serve

log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        job = read_job(options.spec)
    except UserError as error:
        return _end(options, Failure("SpecRefused", str(error), "spec"))
    start_logging(f"{job.metadata.namespace}/{job.metadata.name}")
    crashes.arm()
    try:
        return _end(options, _run(options, job))
    except (UserError, UserCodeError) as error:
        return _end(options, explain(error))


def read_job(path: Path) -> StreamJob:
    """The one StreamJob of a file."""
    jobs = [resource for resource in read_files([path]) if isinstance(resource, StreamJob)]
    if len(jobs) != 1:
        raise UserError(f"{path}: a driver runs exactly one StreamJob, and the file has {len(jobs)}.")
    return jobs[0]


def _run(options: argparse.Namespace, job: StreamJob) -> Failure | None:
    bootstrap = options.bootstrap or job.spec.kafka.bootstrap_servers
    if bootstrap is None:
        raise UserError("No broker is known: set spec.kafka.bootstrapServers, or give one with --bootstrap.")
    stopping = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stopping.set())
    spark = build_session(job.metadata.name, options.master)
    try:
        around = Surroundings(bootstrap, dict(os.environ), options.kafka_auth)
        run = JobRun(spark, job, str(options.checkpoint), around, options.status_file)
        now = live.LiveJob(options.spec, job)
        _serve(run, options.metrics_port, now)
        signal_stop(run, stopping)
        unwatch = live.watch(now, spark.sparkContext)
        failure = run.run(until_caught_up=options.until_caught_up)
        if options.report is not None:
            options.report.write_text(json.dumps(run.status.as_json(), indent=2) + "\n")
        unwatch()
        run.close()
        return failure
    finally:
        spark.stop()


def signal_stop(run: JobRun, stopping: threading.Event) -> None:
    """Pass a signal on, also one that came while Spark was starting."""

    def watch() -> None:
        stopping.wait()
        run.request_stop()

    threading.Thread(target=watch, name="stop", daemon=True).start()


def _serve(run: JobRun, port: int | None, job: live.LiveJob) -> None:
    if port is None:
        return
    registry = CollectorRegistry()
    registry.register(JobCollector(run.plan, run.status))
    server = serve(Pages(registry, lambda: run.health(job.stalled_after_seconds), run.status.as_json), port)
    run.status.update(metrics_port=server.server_port)
    log.info("serving /metrics, /healthz and /status", extra={"event": "serving", "port": server.server_port})


def _end(options: argparse.Namespace, failure: Failure | None) -> int:
    if failure is None:
        return 0
    last_words = json.dumps({"cause": failure.cause, "message": failure.message})
    print(last_words, file=sys.stderr, flush=True)
    if options.termination_log is not None:
        options.termination_log.write_text(last_words)
    return failure.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m millrace_jobs",
        description="Run one StreamJob: the driver that `millrace run` and the operator start.",
    )
    add = parser.add_argument
    add("--spec", type=Path, required=True, help="file with one StreamJob")
    add("--checkpoint", required=True, help="folder for state and position: a path, or an address such as s3a://…")
    add("--bootstrap", help="brokers as host:port; default: the spec's own")
    add("--kafka-auth", type=Path, help="folder with the brokers' credentials, one file for each key of their Secret")
    add("--metrics-port", type=int, help="serve /metrics, /healthz and /status here; 0 chooses a free port")
    add("--until-caught-up", action="store_true", help="work off what is in the topics now, then end")
    add("--report", type=Path, help="write the ledger's totals to this file at the end")
    add("--status-file", help="keep this file up to date after each batch")
    add("--master", help="Spark master; default: this machine with all its cores")
    add("--termination-log", type=Path, help="on failure write cause and message here")
    return parser
