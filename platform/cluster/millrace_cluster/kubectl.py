"""kubectl inside the control plane's node: it has the cluster's own version, and this machine needs none."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from millrace_cluster.docker import Docker
from millrace_cluster.layout import NODES


@dataclass(frozen=True)
class Kubectl:
    """The administrator's kubectl."""

    docker: Docker

    def run(self, *arguments: str) -> str:
        return self.docker.run(*self._command(), *arguments)

    def answers(self, *arguments: str, within_seconds: float) -> bool:
        return self.docker.answers(*self._command(), *arguments, within_seconds=within_seconds)

    def apply(self, objects: Sequence[dict[str, object]]) -> None:
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.docker.run(*self._command(), "apply", "--server-side", "--filename", "-", stdin=listed)

    def _command(self) -> list[str]:
        return ["exec", "--interactive", NODES[0], "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf"]
