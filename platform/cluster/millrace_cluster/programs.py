"""Runs other programs: marked as ours, so that they can be found after a crash, and logged, so that they can be read.

Every child inherits MARK in its environment, and so do its own children, Docker's daemon among them.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from millrace.errors import UserError
from millrace_cluster.places import Places

MARK = "MILLRACE_CLUSTER"


@dataclass(frozen=True)
class Programs:
    """How programs are started for one cache folder."""

    places: Places
    extra: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        path = f"{self.places.bin}{os.pathsep}{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin{os.pathsep}/sbin"
        return {**os.environ, "PATH": path, MARK: str(self.places.cache), **self.extra}

    def having(self, **extra: str) -> "Programs":
        """The same, with more environment variables."""
        return Programs(self.places, {**self.extra, **extra})

    def run(
        self, command: Sequence[str | Path], *, stdin: str | bytes | None = None, folder: Path | None = None
    ) -> str:
        """What it printed on standard output. When it fails: one sentence, and the path of its log."""
        name = Path(command[0]).name
        log = self.places.logs / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        given = stdin.encode() if isinstance(stdin, str) else stdin
        with log.open("wb") as errors:
            done = subprocess.run(
                [str(part) for part in command],
                input=given,
                stdin=subprocess.DEVNULL if given is None else None,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=self.environment(),
                check=False,
            )
        if done.returncode:
            log.write_bytes(done.stdout + log.read_bytes())  # what went wrong is said last, on standard error
            raise UserError(failure(command, done.returncode, log))
        return done.stdout.decode(errors="replace")

    def answers(self, command: Sequence[str | Path], *, within_seconds: float = 20.0) -> bool:
        """Whether it ends well. For questions: nothing is logged."""
        try:
            return (
                subprocess.run(
                    [str(part) for part in command],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    env=self.environment(),
                    timeout=within_seconds,
                    check=False,
                ).returncode
                == 0
            )
        except (OSError, subprocess.TimeoutExpired):
            return False


def failure(command: Sequence[str | Path], code: int, log: Path) -> str:
    """The sentence about a program that failed: its first words, its last words, and where the rest is."""
    called = " ".join([Path(command[0]).name, *(str(part) for part in command[1:3])])
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    last = f' with "{lines[-1][:300]}"' if lines else ""
    return f"'{called}' failed with exit code {code}{last}; its log is {log}."
