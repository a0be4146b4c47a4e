"""A thin hand for the end-to-end tests: namespaces, pods, and waiting for them with a deadline."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client, config, utils, watch

Manifest = Mapping[str, Any]

OVER = {"Succeeded", "Failed"}
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


@dataclass(frozen=True)
class Cluster:
    """The cluster, seen through its API."""

    api: Any

    @classmethod
    def connect(cls, kubeconfig: Path) -> "Cluster":
        return cls(config.new_client_from_config(str(kubeconfig)))

    def nodes(self) -> list[Any]:
        items: list[Any] = core_of(self.api).list_node().items
        return items

    @contextmanager
    def namespace(self, name: str) -> Iterator["Namespace"]:
        """A fresh namespace with restricted pods only. It is removed afterwards, and one left behind before."""
        core = core_of(self.api)
        _delete_namespace(core, name)
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        core.create_namespace({"metadata": {"name": name, "labels": labels}})
        try:
            yield Namespace(self.api, name)
        finally:
            core.delete_namespace(name)  # nobody waits: what comes next has a name of its own


@dataclass(frozen=True)
class Namespace:
    """One namespace and what a test does in it."""

    api: Any
    name: str

    def create(self, *manifests: Manifest) -> None:
        for manifest in manifests:
            utils.create_from_dict(self.api, dict(manifest), namespace=self.name)

    def wait_for_pod(self, name: str, until: Callable[[Any], bool], seconds: float) -> Any:
        """The pod as it is when the condition holds; what it said so far when it never does."""
        deadline = time.monotonic() + seconds
        core = core_of(self.api)
        while (left := int(deadline - time.monotonic())) > 0:
            stream = watch.Watch().stream(
                core.list_namespaced_pod, self.name, field_selector=f"metadata.name={name}", timeout_seconds=left
            )
            for event in stream:
                if until(event["object"]):
                    return event["object"]
        raise AssertionError(f"pod {name} did not get there in {seconds:.0f} s; {self._story(name)}")

    def wait_until_over(self, name: str, seconds: float) -> str:
        """The log of a pod that ended well."""
        pod = self.wait_for_pod(name, lambda pod: pod.status.phase in OVER, seconds)
        assert pod.status.phase == "Succeeded", self._story(name)
        return self.log(name)

    def wait_until_ready(self, name: str, seconds: float) -> Any:
        return self.wait_for_pod(name, is_ready, seconds)

    def log(self, name: str) -> str:
        text: str = core_of(self.api).read_namespaced_pod_log(name, self.name)
        return text

    def pods(self, selector: str) -> list[Any]:
        items: list[Any] = core_of(self.api).list_namespaced_pod(self.name, label_selector=selector).items
        return items

    def _story(self, name: str) -> str:
        core = core_of(self.api)
        events = core.list_namespaced_event(self.name).items
        lines = [f"{event.involved_object.name}: {event.reason}: {event.message}" for event in events]
        for pod in core.list_namespaced_pod(self.name).items:
            lines.append(f"{pod.metadata.name} is {pod.status.phase} on {pod.spec.node_name}")
        try:
            lines.append(self.log(name))
        except client.ApiException as error:
            lines.append(f"no log of {name}: {error.reason}")
        return "\n".join(lines)


def core_of(api: Any) -> Any:
    """The client of the core objects; its types say that every field may be missing, which helps nobody here."""
    return client.CoreV1Api(api)


def is_ready(pod: Any) -> bool:
    conditions = pod.status.conditions or []
    return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)


def pod(name: str, image: str, command: list[str], **spec: Any) -> dict[str, Any]:
    """A pod of one container that keeps to the restricted standard."""
    container = {"name": "main", "image": image, "command": command, "securityContext": RESTRICTED}
    container.update(spec.pop("container", {}))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **spec},
    }


def _delete_namespace(core: Any, name: str, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while any(found.metadata.name == name for found in core.list_namespace().items):
        try:
            core.delete_namespace(name)
        except client.ApiException as error:
            if error.status not in (404, 409):  # gone in the meantime, or on its way
                raise
        assert time.monotonic() < deadline, f"namespace {name} of an earlier run does not go away"
        time.sleep(0.5)
