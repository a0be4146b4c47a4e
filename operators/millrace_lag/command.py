"""`millrace lag`: how far behind the jobs are, as a table."""

import json
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rich.console import Console

from millrace.commands import Command
from millrace.commands.options import address
from millrace.errors import UserError
from millrace.kafka.security import Security, read_security
from millrace_lag.discovery import discover
from millrace_lag.polling import ClusterView, Poller
from millrace_lag.snapshots import as_json
from millrace_lag.subjects import Door, Subject, read_path
from millrace_lag.tables import jobs_table, partitions_table
from millrace_lag.verdicts import ENOUGH

LOOKS, PAUSE_SECONDS = ENOUGH + 1, 0.6
DEADLINE_SECONDS = 15.0

DESCRIPTION = """\
Asks the Kafka brokers how far behind each job is: unread records, the age of the oldest of them, how long until
retention deletes it, and what was lost already. It asks several times within a few seconds, to see which way it goes.
Works for jobs that hang or are stopped too: the brokers know their positions.

  millrace lag --bootstrap localhost:9092                  every job that ever committed a position there
  millrace lag orders --bootstrap localhost:9092           one job, partition by partition
  millrace lag --bootstrap localhost:9092 --jobs jobs/     the jobs of these specs, also those that never ran
  millrace lag --observer http://localhost:9090            what a running observer knows, without asking the brokers"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", nargs="?", metavar="JOB", help="NAME or NAMESPACE/NAME; shows its partitions too")
    parser.add_argument("--bootstrap", type=address, metavar="HOST:PORT", help="the Kafka cluster to ask")
    parser.add_argument("--jobs", type=Path, metavar="PATH", help="spec file, or folder of them")
    parser.add_argument(
        "--kafka-auth",
        type=Path,
        metavar="FOLDER",
        help="the brokers' credentials, one file for each key of their Secret",
    )
    parser.add_argument("--observer", metavar="URL", help="ask a running lag observer instead of the brokers")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(arguments: Namespace) -> int:
    console = Console()
    if arguments.observer is not None:
        _print(console, arguments, _only(arguments.job, _fetched(arguments.observer)), None)
        return 0
    if arguments.bootstrap is None:
        raise UserError("Nobody to ask: name brokers with --bootstrap HOST:PORT, or an observer with --observer URL.")
    security = read_security(arguments.kafka_auth) if arguments.kafka_auth is not None else None
    view = look(_subjects(arguments, security), arguments.bootstrap, security)
    _print(console, arguments, as_json([view])["jobs"], view)
    return 0


def look(watched: tuple[Subject, ...], bootstrap: str, security: Security | None = None) -> ClusterView:
    """Several looks, so that there is a verdict."""
    poller = Poller(Door(bootstrap), DEADLINE_SECONDS, lambda _: security)
    try:
        for turn in range(LOOKS):
            view = poller.poll(watched)
            if not view.health.up:
                why = view.health.error
                raise UserError(f"{bootstrap} cannot be asked ({why}): check the address and that it is up.")
            if turn + 1 < LOOKS and any(job.records for job in view.jobs.values()):
                time.sleep(PAUSE_SECONDS)
        return view
    finally:
        poller.close()


def _subjects(arguments: Namespace, security: Security | None) -> tuple[Subject, ...]:
    bootstrap, jobs = arguments.bootstrap, arguments.jobs
    found = discover(bootstrap, security) if jobs is None else read_path(jobs, bootstrap, only_cluster=True)
    chosen = tuple(one for one in found if _is(arguments.job, one.namespace, one.job))
    if not chosen:
        what = f"job {arguments.job}" if arguments.job else "job"
        where = f"has a position in {bootstrap}" if arguments.jobs is None else f"is in {arguments.jobs}"
        raise UserError(f"No {what} {where}: check the name, or give the specs of your jobs with --jobs.")
    return chosen


def _is(asked: str | None, namespace: str, job: str) -> bool:
    return asked in (None, job, f"{namespace}/{job}")


def _only(asked: str | None, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    chosen = [one for one in jobs if _is(asked, one["namespace"], one["job"])]
    if asked is not None and not chosen:
        raise UserError(f"The observer does not watch a job {asked}: check its name.")
    return chosen


def _fetched(url: str) -> list[dict[str, Any]]:
    if not url.startswith(("http://", "https://")):
        raise UserError(f"{url!r} is not the address of an observer: write it as http://HOST:PORT.")
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/lag", timeout=DEADLINE_SECONDS) as answer:  # noqa: S310
            return list(json.load(answer)["jobs"])
    except (urllib.error.URLError, ValueError, KeyError, TimeoutError) as error:
        raise UserError(f"No lag observer answers at {url}: check the address and that it is up.") from error


def _print(console: Console, arguments: Namespace, jobs: list[dict[str, Any]], view: ClusterView | None) -> None:
    if arguments.json:
        print(json.dumps({"jobs": jobs}, indent=2))
        return
    console.print(jobs_table(jobs))
    if arguments.job is not None and view is not None:
        for job in view.jobs.values():
            console.print()
            console.print(partitions_table(job))


COMMAND = Command("lag", "show how far behind every job is", DESCRIPTION, add_arguments, run)
