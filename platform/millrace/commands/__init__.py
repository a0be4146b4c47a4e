"""The commands of the command line, one module each. A module offers COMMAND; nothing else here is looked at.

Commands of the kernel are named in OWN. A part that the kernel must not know (the operator, say) registers its own as
an entry point of the group `millrace.commands` in pyproject.toml: `plan = "millrace_operator.commands.plan:COMMAND"`.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points

OWN = ("run", "demo")
GROUP = "millrace.commands"


@dataclass(frozen=True)
class Command:
    """One subcommand. `run` returns the exit code; what a person can put right it raises as UserError."""

    name: str
    summary: str
    """One line for `millrace --help`."""
    description: str
    """The text above the options in `millrace NAME --help`."""
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


def commands() -> Iterator[Command]:
    """All commands, our own first."""
    for module in OWN:
        yield import_module(f"{__name__}.{module}").COMMAND
    for registered in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        command = registered.load()
        if isinstance(command, Command):
            yield command
