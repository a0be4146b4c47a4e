"""What this machine can and cannot do, and the sentence about each thing that is missing."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from millrace.errors import UserError
from millrace_cluster.programs import Programs
from millrace_cluster.progress import step

SYS_RESOURCE = 24  # the number of CAP_SYS_RESOURCE among the capabilities
OLDEST_GO = (1, 21)  # the first that fetches the tool chain that a module asks for
DOCKER_PACKAGES = {"dockerd": "docker.io", "containerd": "containerd", "runc": "runc", "iptables": "iptables"}
BASE_PACKAGES = {"debootstrap": "debootstrap"}

NO_DOCKER_NO_ROOT = (
    "No Docker daemon answers, and starting one of our own needs root: start Docker, or run this as root."
)
NO_DOCKER_NO_APT = (
    "No Docker daemon answers, and {missing} cannot be installed here without apt-get: install and start Docker."
)
NO_GO = "There is no Go here, and kind is built with it: install Go 1.21 or newer, so that 'go' is on the path."
OLD_GO = "{go} is version {version}, which is too old to build kind: install Go 1.21 or newer."
NO_LINUX = "The cluster's nodes are Linux containers and no Docker daemon answers: start Docker."


def has_capability(status: str, number: int) -> bool:
    """Whether a capability is in the bounding set, read from the text of /proc/self/status."""
    found = re.search(r"^CapBnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is not None and bool(int(found.group(1), 16) >> number & 1)


def lacks_sys_resource() -> bool:
    """True on small virtual machines whose root may not raise limits; runc then refuses privileged containers."""
    return not has_capability(Path("/proc/self/status").read_text(), SYS_RESOURCE)


def has_unified_cgroups() -> bool:
    """Kubernetes 1.35 and later refuse a host that still has cgroups of version 1."""
    return Path("/sys/fs/cgroup/cgroup.controllers").exists()


def check_may_start_docker() -> None:
    if os.uname().sysname != "Linux":
        raise UserError(NO_LINUX)
    if os.geteuid() != 0:
        raise UserError(NO_DOCKER_NO_ROOT)


def missing_programs(wanted: Mapping[str, str], path: str) -> dict[str, str]:
    """Programs that are not on the path, with the packages that bring them."""
    return {program: package for program, package in wanted.items() if shutil.which(program, path=path) is None}


def install(programs: Programs, wanted: Mapping[str, str]) -> None:
    """Have the Debian packages that bring these programs; nothing happens where they are all there."""
    missing = missing_programs(wanted, programs.environment()["PATH"])
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise UserError(NO_DOCKER_NO_APT.format(missing=" and ".join(missing)))
    packages = sorted(set(missing.values()))
    quiet = programs.having(DEBIAN_FRONTEND="noninteractive")
    with step(f"install {', '.join(packages)}"):
        quiet.run(["apt-get", "update", "-qq"])
        quiet.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages])


def find_go(programs: Programs) -> str:
    go = shutil.which("go")
    if go is None:
        raise UserError(NO_GO)
    version = programs.run([go, "env", "GOVERSION"]).strip()
    if go_version(version) < OLDEST_GO:
        raise UserError(OLD_GO.format(go=go, version=version))
    return go


def go_version(printed: str) -> tuple[int, int]:
    """(1, 26) for `go1.26.8`; what cannot be read counts as too old."""
    found = re.match(r"go(\d+)\.(\d+)", printed)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)
