"""What a driver may do in its namespace: run its executors, nothing else."""

from millrace import naming
from millrace_operator.actions import Manifest
from millrace_operator.desired.target import Target, metadata

PODS = ["create", "get", "list", "watch", "delete", "deletecollection", "patch"]


def driver(target: Target) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata(target, naming.service_account(target.name), "driver"),
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": PODS}],
    }
