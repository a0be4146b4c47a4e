"""The ServiceAccount that a job's driver runs as."""

from millrace import naming
from millrace_operator.actions import Manifest
from millrace_operator.desired.target import Target, metadata


def driver(target: Target) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(target, naming.service_account(target.name), "driver"),
    }
