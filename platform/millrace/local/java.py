"""Where this machine's Java and our pinned jars are, or one sentence about what is missing."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from millrace.errors import UserError

OLDEST_JAVA = 17
HOW_TO_GET_JAVA = (
    f"install Java {OLDEST_JAVA} or newer (on Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
)


def find_java() -> str:
    """The `java` program to use: JAVA_HOME's, else the first one on the path. Checks that it is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if java is None:
        where = f"in JAVA_HOME ({home})" if home else "on the path"
        raise UserError(f"There is no java {where}: {HOW_TO_GET_JAVA}.")
    version = java_version(java)
    if version < OLDEST_JAVA:
        raise UserError(f"{java} is Java {version}, which is too old: {HOW_TO_GET_JAVA}.")
    return java


def java_version(java: str) -> int:
    """The major version that `java -version` prints: 17 for "17.0.15", 8 for "1.8.0_412"."""
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', printed.stderr + printed.stdout)
    if found is None:
        raise UserError(f"{java} -version does not print a version, so it is no usable Java: {HOW_TO_GET_JAVA}.")
    return int(found.group(1))


def find_jars(part: str) -> Path:
    """The folder with the pinned jars of one class path: `broker` or `spark`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("MILLRACE_JARS") or cache / "millrace" / "jars") / part
    if not any(folder.glob("*.jar")):
        raise UserError(
            f"There are no jars in {folder}: run 'make setup', or set MILLRACE_JARS to the folder that holds them."
        )
    return folder
