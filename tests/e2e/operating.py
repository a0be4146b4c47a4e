"""What the operator's end-to-end tests share: an operator as a process here, and a hand for its resources."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client

from millrace_cluster.places import places
from tests.e2e.kube import Namespace

REPOSITORY = Path(__file__).resolve().parents[2]
JOB_IMAGE = "millrace/job:dev"
GROUP, VERSION = "millrace.io", "v1alpha1"
PLURALS = {"StreamJob": "streamjobs", "Topic": "topics"}
Body = dict[str, Any]


@contextmanager
def operator(namespace: str, log: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """An operator that watches one namespace, with the cluster's kubeconfig, until the block ends."""
    command = [sys.executable, "-m", "millrace_operator", "run", "--kubeconfig", str(places().kubeconfig)]
    command += ["--namespace", namespace, "--home", namespace, "--job-image", JOB_IMAGE, "--checkpoint-class", "shared"]
    with log.open("ab") as out, subprocess.Popen([*command, *arguments], stdout=out, stderr=out) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def install_crds() -> None:
    crds = [str(REPOSITORY / "charts/millrace/crds")]
    subprocess.run([*kubectl(), "apply", "--server-side", "--force-conflicts", "-f", *crds], check=True)


def kubectl(*arguments: str) -> list[str]:
    return [str(places().bin / "kubectl"), "--kubeconfig", str(places().kubeconfig), *arguments]


class Resources:
    """StreamJobs and Topics of one namespace, through the real API server."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._api = client.CustomObjectsApi(namespace.api)
        # their types say that every field may be missing, which helps nobody here
        self.core: Any = client.CoreV1Api(namespace.api)
        self.apps: Any = client.AppsV1Api(namespace.api)

    @property
    def name(self) -> str:
        return self._namespace.name

    def create(self, body: Body) -> None:
        whole = {"apiVersion": f"{GROUP}/{VERSION}", **body}
        self._api.create_namespaced_custom_object(GROUP, VERSION, self.name, PLURALS[body["kind"]], whole)

    def create_yaml(self, text: str) -> None:
        for body in yaml.safe_load_all(text):
            self.create(body)

    def get(self, kind: str, name: str) -> Body:
        found: Any = self._api.get_namespaced_custom_object(GROUP, VERSION, self.name, PLURALS[kind], name)
        return dict(found)

    def edit(self, kind: str, name: str, **spec: Any) -> None:
        self.patch(kind, name, {"spec": spec})

    def patch(self, kind: str, name: str, body: Body) -> None:
        self._api.patch_namespaced_custom_object(GROUP, VERSION, self.name, PLURALS[kind], name, body)

    def delete(self, kind: str, name: str) -> None:
        self._api.delete_namespaced_custom_object(GROUP, VERSION, self.name, PLURALS[kind], name)

    def release(self) -> None:
        """Nothing of ours holds the namespace up when a test ended in the middle and no operator is there any more."""
        for plural in PLURALS.values():
            found: Any = self._api.list_namespaced_custom_object(GROUP, VERSION, self.name, plural)
            for one in found["items"]:
                body = {"metadata": {"finalizers": None}}
                self._api.patch_namespaced_custom_object(
                    GROUP, VERSION, self.name, plural, one["metadata"]["name"], body
                )

    def exists(self, kind: str, name: str) -> bool:
        try:
            self.get(kind, name)
        except client.ApiException as error:
            if error.status == 404:
                return False
            raise
        return True

    def condition(self, kind: str, name: str, asked: str) -> tuple[str, str, str]:
        found = self.get(kind, name).get("status", {}).get("conditions", [])
        one: Body = next((one for one in found if one["type"] == asked), {})
        return one.get("status", ""), one.get("reason", ""), one.get("message", "")

    def wait(self, what: str, holds: Callable[[], bool], seconds: float) -> float:
        """How long it took until the condition held."""
        started = time.monotonic()
        while not holds():
            assert time.monotonic() - started < seconds, f"waited {seconds:.0f} s for {what}; {self._story()}"
            time.sleep(0.25)
        return time.monotonic() - started

    def wait_for_condition(self, name: str, asked: str, status: str, reason: str, seconds: float = 60) -> str:
        """The condition's message."""
        self.wait(
            f"{asked}={status} {reason} of {name}",
            lambda: self.condition("StreamJob", name, asked)[:2] == (status, reason),
            seconds,
        )
        return self.condition("StreamJob", name, asked)[2]

    def wait_for_state(self, name: str, state: str, seconds: float) -> float:
        return self.wait(f"state {state} of {name}", lambda: self.state(name) == state, seconds)

    def state(self, name: str) -> str:
        return str(self.get("StreamJob", name).get("status", {}).get("state", ""))

    def driver(self, name: str) -> Any:
        """The driver's pod, or None."""
        found = self._namespace.pods(f"millrace.io/job={name},millrace.io/role=driver")
        return found[0] if found else None

    def executors(self, name: str) -> list[Any]:
        found = self._namespace.pods(f"millrace.io/job={name},millrace.io/role=executor")
        return [pod for pod in found if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None]

    def ask_driver(self, name: str) -> Body:
        """The driver's own status, through the API server."""
        path = f"/api/v1/namespaces/{self.name}/pods/{name}-driver-0:8090/proxy/status"
        done = subprocess.run(kubectl("get", "--raw", path), capture_output=True, check=False)
        found: Body = json.loads(done.stdout) if done.returncode == 0 else {}
        return found

    def in_driver(self, name: str, script: str) -> None:
        command = kubectl("-n", self.name, "exec", f"{name}-driver-0", "--", "python", "-c", script)
        subprocess.run(command, check=False, capture_output=True)

    def _story(self) -> str:
        done = subprocess.run(
            kubectl("-n", self.name, "get", "streamjobs,topics,pods", "-o", "wide"), capture_output=True, check=False
        )
        return done.stdout.decode()


KILL = """
import os, signal
for entry in os.listdir("/proc"):
    if entry.isdigit() and int(entry) not in (1, os.getpid()):
        line = open(f"/proc/{entry}/cmdline").read()
        if "millrace_jobs" in line and "-c" not in line.split("\\0"):
            os.kill(int(entry), signal.SIGKILL)
"""
"""Run inside of a driver's container: ends the driver's process as a machine would."""
