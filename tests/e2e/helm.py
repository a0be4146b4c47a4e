"""Helm for the end-to-end tests: a release of the chart, and everything that carries its name in the cluster."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from millrace_cluster.places import places
from tests.e2e.operating import REPOSITORY, kubectl

CHART = REPOSITORY / "charts/millrace"
FIRST_VALUES = Path(__file__).parent / "values/first.yaml"
WAIT = ("--wait", "--timeout", "3m")


def helm(*words: str, check: bool = True) -> str:
    """What Helm prints; its complaint is part of the failure."""
    environment = {**os.environ, "KUBECONFIG": str(places().kubeconfig)}
    command = [str(places().bin / "helm"), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, f"helm {' '.join(words)}: {done.stderr}{done.stdout}"
    return done.stdout + done.stderr


def ask(*words: str, check: bool = True) -> str:
    """What kubectl prints, its complaints included."""
    done = subprocess.run(kubectl(*words), capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, f"kubectl {' '.join(words)}: {done.stderr}{done.stdout}"
    return done.stdout + (done.stderr if not check else "")


def rendered(*words: str, chart: Path = CHART) -> list[dict[str, Any]]:
    """The objects of a chart, as Helm makes them without a cluster."""
    text = subprocess.run(
        [str(places().bin / "helm"), "template", "millrace", str(chart), "--namespace", "home", *words],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [one for one in yaml.safe_load_all(text) if one]


@dataclass(frozen=True)
class Release:
    """A release and what is done with it."""

    name: str
    namespace: str

    def upgrade(self, *words: str) -> str:
        return helm("upgrade", self.name, str(CHART), "-n", self.namespace, *WAIT, *words)

    def test(self) -> str:
        return helm("test", self.name, "-n", self.namespace, "--timeout", "5m")

    def manifest(self) -> list[dict[str, Any]]:
        return [one for one in yaml.safe_load_all(helm("get", "manifest", self.name, "-n", self.namespace)) if one]

    def account(self, component: str) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}-{component}"

    def objects(self) -> list[str]:
        """Everything in the cluster, of whatever kind, that carries the release's label."""
        return everything("--selector", f"app.kubernetes.io/instance={self.name}")


def everything(*words: str, namespace: str = "") -> list[str]:
    """Objects of every kind that can be listed, of one namespace or of all the cluster, without events: they fade."""
    where = ["-n", namespace] if namespace else ["--all-namespaces"]
    kinds = ask("api-resources", "--verbs=list", *(["--namespaced=true"] if namespace else []), "-o", "name").split()
    asked = ",".join(kind for kind in kinds if not kind.startswith("events"))
    return sorted(ask("get", asked, *where, *words, "-o", "name", "--ignore-not-found").split())


@contextmanager
def installed(name: str, namespace: str, *words: str) -> Iterator[Release]:
    """A release that is ready; it is gone after the block, if the block did not remove it itself."""
    helm("install", name, str(CHART), "-n", namespace, *WAIT, *words)
    try:
        yield Release(name, namespace)
    finally:
        helm("uninstall", name, "-n", namespace, *WAIT, "--ignore-not-found")


def wait_until(holds: Callable[[], bool], what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.5)
