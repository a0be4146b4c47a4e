"""Credentials for the doors that are watched, from folders with one file for each key. Read anew each time."""

import os
from collections.abc import Callable
from pathlib import Path

from millrace import naming
from millrace.kafka.security import Security, read_security
from millrace_lag.subjects import Door

Logins = Callable[[Door], Security | None]
"""Who we are to the brokers behind a door; None where they ask nobody. Raises UserError where that cannot be had."""


def from_folders(door: Door) -> Security | None:
    """As jobs find them: below the folder of Secrets."""
    if not door.secret:
        return None
    return read_security(Path(os.environ.get(naming.SECRETS_FOLDER_VARIABLE, naming.SECRETS_FOLDER)) / door.secret)
