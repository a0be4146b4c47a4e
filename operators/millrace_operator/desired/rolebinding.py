"""Gives a driver's ServiceAccount its Role."""

from millrace import naming
from millrace_operator.actions import Manifest
from millrace_operator.desired.target import Target, metadata

GROUP = "rbac.authorization.k8s.io"


def driver(target: Target) -> Manifest:
    name = naming.service_account(target.name)
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": metadata(target, name, "driver"),
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": target.namespace}],
    }
