"""Keeps the shared volumes ready for claims: makes those that are missing, renews those that were given back."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from millrace_cluster import layout
from millrace_cluster.kubectl import Kubectl

GIVEN_BACK = {"Released", "Failed"}


def to_make(phases: Mapping[str, str]) -> list[str]:
    """Volumes that are not there, or whose claim is gone, by the phase of those that are."""
    names = [layout.volume_name(number) for number in range(layout.VOLUMES)]
    return [name for name in names if phases.get(name) is None or phases[name] in GIVEN_BACK]


def prepare(kubectl: Kubectl, folder: Path) -> int:
    """Bring the class and its volumes into shape; returns how many volumes were made."""
    phases = _phases(kubectl)
    wanted = to_make(phases)
    old = [name for name in wanted if name in phases]
    if old:
        kubectl.run("delete", "persistentvolume", "--wait", *old)
    for name in wanted:
        _empty(folder / name)
    kubectl.apply([layout.storage_class(), *(layout.volume(name) for name in wanted)])
    return len(wanted)


def _phases(kubectl: Kubectl) -> dict[str, str]:
    listed = json.loads(kubectl.run("get", "persistentvolume", "--output", "json"))["items"]
    return {item["metadata"]["name"]: item.get("status", {}).get("phase", "Pending") for item in listed}


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o777)  # pods run under any user, and a host path takes no notice of fsGroup
