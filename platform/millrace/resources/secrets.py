"""The content of a Secret, on a cluster and without one, read the same way.

A Secret is a folder with one file for each key, below the folder of Secrets: that is how the operator mounts it. For a
person at a terminal one environment variable can stand for it, with a connection's address as its only key, `url`.
Nothing in here prints or keeps what it read.
"""

from collections.abc import Mapping
from pathlib import Path

from millrace import naming
from millrace.errors import UserError


def read_secret(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The keys of a Secret and their values."""
    variable = naming.secret_variable(name)
    if variable in environment:
        return {"url": environment[variable]}
    base = Path(environment.get(naming.SECRETS_FOLDER_VARIABLE, naming.SECRETS_FOLDER))
    folder = base / name
    if not folder.is_dir():
        raise UserError(
            f"Secret {name!r} cannot be found: set {variable} to its address, or make the folder {folder} with one "
            "file for each key."
        )
    # Kubernetes keeps the files' older versions beside them, below names that start with dots
    files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    return {file.name: file.read_text(encoding="utf-8").rstrip("\n") for file in files}
