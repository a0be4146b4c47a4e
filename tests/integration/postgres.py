"""A real PostgreSQL server of the tests' own: loopback only, in a folder of its own, gone when the tests are.

Not for users: the platform never starts a database.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from millrace.local.processes import Child

HOST = "127.0.0.1"
READY_SECONDS = 30.0
# A test's server need not survive the loss of power, only that of its processes.
SETTINGS = ("fsync=off", "max_connections=40", "shared_buffers=32MB", f"listen_addresses={HOST}")


class Server:
    """One server on one folder and one port, which can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._port = _free_port()
        self._child: Child | None = None

    @property
    def url(self) -> str:
        return f"postgresql://tests@{HOST}:{self._port}/postgres"

    def start(self) -> None:
        """Start it and return when it answers."""
        if not self._data.exists():
            command = [_program("initdb"), "-D", self._data, "-U", "tests", "-A", "trust", "-E", "UTF8", "--no-sync"]
            subprocess.run(_unprivileged(map(str, command)), check=True, capture_output=True, cwd=self._folder)
        settings = [part for setting in SETTINGS for part in ("-c", setting)]
        command = [_program("postgres"), "-D", self._data, "-p", self._port, "-k", self._folder, *settings]
        with (self._folder / "server.log").open("ab") as log:
            # Hardly any grace: asked to stop, a server waits for its clients, and an outage does not ask them.
            self._child = Child(
                _unprivileged(map(str, command)), grace_seconds=0.2, stdout=log, stderr=subprocess.STDOUT
            )
        self._wait_until_ready()

    def stop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.stop()

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.url, connect_timeout=5)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    log = (self._folder / "server.log").read_text(errors="replace")
                    self.stop()
                    raise AssertionError(f"PostgreSQL did not start: {log}") from None
                time.sleep(0.05)


@contextmanager
def running_server() -> Iterator[Server]:
    """A server with an empty database. Its folder is not pytest's, which is closed to the server's own user."""
    folder = Path(tempfile.mkdtemp(prefix="millrace-postgres-"))
    if os.getuid() == 0:
        account = _account()
        os.chown(folder, account.pw_uid, account.pw_gid)
    server = Server(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One server for the whole session. Tests keep apart by tables of their own."""
    with running_server() as server:
        yield server


def _program(name: str) -> str:
    """Debian keeps the server's programs off the path."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    found = str(installed[-1]) if installed else shutil.which(name)
    assert found, "There is no PostgreSQL server here: install Debian's package postgresql."
    return found


def _account() -> pwd.struct_passwd:
    """The server refuses to run as root."""
    names = {account.pw_name: account for account in pwd.getpwall()}
    return names.get("postgres", names["nobody"])


def _unprivileged(command: Iterator[str]) -> list[str]:
    if os.getuid() != 0:
        return list(command)
    account = _account()
    # Changing the user makes the kernel forget that the guard's death is to be followed, so that is asked for again.
    user = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", "--pdeathsig=KILL"]
    return ["setpriv", *user, "--", *command]


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as held:
        return int(held.getsockname()[1])
