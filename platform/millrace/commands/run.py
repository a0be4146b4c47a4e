"""`millrace run`: the jobs of some spec files, on this machine."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from millrace.commands import Command
from millrace.commands.options import address, port
from millrace.local.reports import make_report, write_report
from millrace.local.runs import Run, RunSettings, watch
from millrace.local.screens import make_console, make_screen
from millrace.local.signals import StopRequests
from millrace.local.tables import summary
from millrace.resources.reading import read_files

DESCRIPTION = """\
Runs the StreamJobs in the files on this machine: one driver process each, and a Kafka broker of its own unless
--bootstrap names another. Topics that are missing are made; Topic resources in the files say how. The broker's address
in a spec is not used here, so a spec for production can be tried without touching production.

  millrace run jobs/examples/pageviews-per-minute.yaml
  millrace run orders.yaml visits.yaml --bootstrap localhost:9092 --until-caught-up --report report.json

Ctrl-C lets each job finish its batch; a later run goes on from there. A mistake in a file gives one line with the
field and what would be right, exit code 2, and nothing runs. A job that fails: exit code 1."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="YAML file with StreamJobs and Topics")
    parser.add_argument(
        "--bootstrap", type=address, metavar="HOST:PORT", help="use this Kafka cluster instead of a broker of our own"
    )
    parser.add_argument("--until-caught-up", action="store_true", help="read what is there now, then end")
    parser.add_argument(
        "--metrics-port",
        type=port,
        default=0,
        metavar="N",
        help="serve /metrics, /healthz and /status of the first job here, of the next ones on the ports after it "
        "(default: free ports)",
    )
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="at the end, write the ledger's totals there")
    parser.add_argument(
        "--state",
        type=Path,
        default=Path(".millrace"),
        metavar="DIR",
        help="folder for checkpoints, logs and the broker's data (default: .millrace); delete it to start afresh",
    )


def run(arguments: Namespace) -> int:
    resources = read_files(arguments.files)
    settings = RunSettings(
        state=arguments.state,
        bootstrap=arguments.bootstrap,
        until_caught_up=arguments.until_caught_up,
        metrics_port=arguments.metrics_port,
        code=tuple(dict.fromkeys(file.parent for file in arguments.files)),
    )
    console = make_console()
    screen = make_screen(console)
    with Run(resources, settings, screen.say) as jobs, StopRequests() as requests:
        jobs.start()
        with screen:
            watch(jobs, screen, requests, lambda: f"Kafka {jobs.bootstrap}   Ctrl-C ends it")
        console.print(summary(jobs.rows()))
        if arguments.report is not None:
            write_report(arguments.report, make_report(jobs.drivers))
        return 1 if jobs.has_failed() else 0


COMMAND = Command("run", "run job specs on this machine", DESCRIPTION, add_arguments, run)
