"""The command line: `millrace COMMAND …`. Finds the command, runs it, turns errors into sentences and exit codes.

Exit codes: 0 well, 1 something failed, 2 what was asked for is wrong and nothing has run, 130 stopped while it started.
"""

import os
import signal
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib.metadata import version
from types import FrameType

from millrace.commands import commands
from millrace.errors import UserError
from millrace.local.processes import end_with_parent
from millrace.resources.reading import SpecError

DESCRIPTION = "Streams that account for every event: run job specs on this machine, watch them, look into them."
EPILOG = "'millrace COMMAND --help' tells more about a command. A first look: 'millrace demo --for 60s'."
ENDS_WITH_PARENT = "MILLRACE_ENDS_WITH_PARENT"  # set by make, so that killing make ends what it runs
FAILED, REFUSED, INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = make_parser().parse_args(arguments)
    if os.environ.get(ENDS_WITH_PARENT):
        end_with_parent()
    before = signal.signal(signal.SIGTERM, _interrupt)  # unwinds like Ctrl-C: nothing is left behind
    try:
        code: int = parsed.command.run(parsed)
    except UserError as error:
        print(error, file=sys.stderr)
        return REFUSED if isinstance(error, SpecError) else FAILED
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)
    return code


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="millrace", description=DESCRIPTION, epilog=EPILOG, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"millrace {version('millrace')}")
    choices = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in commands():
        one = choices.add_parser(
            command.name,
            help=command.summary,
            description=command.description,
            formatter_class=RawDescriptionHelpFormatter,
        )
        command.add_arguments(one)
        one.set_defaults(command=command)
    return parser


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
