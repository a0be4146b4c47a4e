"""`millrace demo`: a shop's events, a broker and the example jobs, all on this machine, with nothing to set up."""

import contextlib
import shutil
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from millrace.commands import Command
from millrace.commands.options import duration
from millrace.kafka.topics import TopicPlan, create_missing
from millrace.local import alert_tables
from millrace.local.demo import SHOP, Agreement, Course, example_files
from millrace.local.drama import Drama
from millrace.local.feed import Feed
from millrace.local.monitoring import Monitoring, lacking
from millrace.local.results import Result, newest, read_results
from millrace.local.runs import Run, RunSettings, watch
from millrace.local.screens import Screen, make_console, make_screen
from millrace.local.signals import StopRequests
from millrace.local.tables import summary, titled
from millrace.resources.metadata import Resource
from millrace.resources.reading import read_files
from millrace.shop import ORDERS, PAGEVIEWS

DEFAULT = ("pageviews-per-minute", "visits")
SHOWN_RESULTS = 5
DESCRIPTION = f"""\
Opens a made-up shop whose visitors leave page views and orders: some late, some malformed, some from a clock that
runs ahead. Jobs from jobs/examples read them, exactly as 'millrace run' would; by default these are
{" and ".join(DEFAULT)}. In a demo of a minute two things go wrong on purpose: a crowd comes back from a
dead spot, and one job is held as if it hung. Prometheus and Alertmanager, where they are installed, show the alerts.

  millrace demo
  millrace demo --for 60s
  millrace demo orders-per-product

A live table shows every job. At the end the shop closes, the jobs read what is left, and a summary holds what the
shop sent against what the jobs say they read. Exit code 1 when the two differ, or when a job failed."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help="name of a file in jobs/examples, without .yaml")
    parser.add_argument(
        "--for",
        type=duration,
        dest="length",
        metavar="TIME",
        help="close the shop after so long, counted from when all jobs have caught up; for instance 60s",
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder with checkpoints, logs and the topics")


def run(arguments: Namespace) -> int:
    resources = read_files(example_files(arguments.examples or DEFAULT))
    console = make_console()
    state = Path(tempfile.mkdtemp(prefix="millrace-demo-"))
    keep = True
    try:
        well = play(console, resources, state, arguments.length)
        keep = arguments.keep or not well
    except KeyboardInterrupt:
        keep = arguments.keep
        raise
    finally:
        if keep:
            console.print(f"Checkpoints, logs and topics are kept in {state}", markup=False, soft_wrap=True)
        else:
            shutil.rmtree(state, ignore_errors=True)
    return 0 if well else 1


def play(console: Console, resources: Sequence[Resource], state: Path, length: timedelta | None) -> bool:
    """The whole demo; True when every job ended well and read what was sent."""
    screen = make_screen(console)
    with contextlib.ExitStack() as stack:
        jobs = stack.enter_context(Run(resources, RunSettings(state), screen.say))
        requests = stack.enter_context(StopRequests())
        create_missing(jobs.bootstrap, [TopicPlan(topic) for topic in (PAGEVIEWS, ORDERS)])
        monitoring = start_monitoring(stack, jobs, state, screen)
        alerts = None if monitoring is None else monitoring.episodes
        jobs.start()
        feed = stack.enter_context(Feed(jobs.bootstrap, SHOP))
        drama = Drama(feed, jobs.drivers, screen.say, length.total_seconds() if length else None, alerts)
        course = Course(jobs, feed, requests, length, drama, monitoring)
        with screen:
            watch(jobs, screen, requests, course.headline, course.is_over, patience=1, alerts=alerts)
        console.print(summary(jobs.rows()))
        if alerts is not None:
            console.print(alert_tables.summary(alerts()))
        show_results(console, jobs)
        agreements, early = course.agreements(), not course.all_read()
        console.print(agreement_table(agreements, "stopped early" if early and requests.count else "differs"))
        return not jobs.has_failed() and (bool(requests.count) if early else all(one.holds for one in agreements))


def start_monitoring(stack: contextlib.ExitStack, jobs: Run, state: Path, screen: Screen) -> Monitoring | None:
    """What watches for alerts; None, and a sentence about it, where it cannot be had."""
    if reason := lacking():
        screen.say(reason)
        return None
    monitoring = stack.enter_context(Monitoring(state / "monitoring", jobs.bootstrap, jobs.drivers))
    screen.say(monitoring.addresses)
    return monitoring


def show_results(console: Console, jobs: Run) -> None:
    """The newest results of each job: what all this was for."""
    for driver in jobs.drivers:
        for sink in driver.job.spec.sinks:
            results = newest(read_results(jobs.bootstrap, sink.topic), SHOWN_RESULTS) if sink.topic else []
            if results:
                console.print(result_table(f"Newest results in topic {sink.topic}", results))


def result_table(title: str, results: Sequence[Result]) -> Table:
    names = [name for name, value in results[0].items() if not isinstance(value, list | dict)]
    table = titled(title, names, ())
    for result in results:
        table.add_row(*(str(result.get(name, "")).replace(".000000Z", "Z") for name in names))
    return table


def agreement_table(agreements: Sequence[Agreement], otherwise: str) -> Table:
    """`otherwise` is said of a line whose figures are not equal."""
    figures = ("sent", "read", "malformed sent", "found", "ahead sent", "found", "")
    table = titled("What the shop sent, and what the jobs say they read", ["job"], figures)
    for one in agreements:
        numbers = (one.sent, one.read, one.malformed_sent, one.malformed_read, one.ahead_sent, one.ahead_read)
        verdict = "[green]equal[/]" if one.holds else f"[bold red]{otherwise}[/]"
        table.add_row(one.job, *(f"{number:,}" for number in numbers), verdict)
    return table


COMMAND = Command("demo", "a shop, a broker and the example jobs on this machine", DESCRIPTION, add_arguments, run)
