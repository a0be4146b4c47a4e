"""The version of a job that should run, and the parts that all its objects share: labels, owner, names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millrace import naming
from millrace.resources import StreamJob
from millrace.resources.metadata import API_GROUP, API_VERSION
from millrace_operator.actions import Manifest

MANAGED_BY = "app.kubernetes.io/managed-by"
JOB_LABEL = f"{API_GROUP}/job"
ROLE_LABEL = f"{API_GROUP}/role"
REVISION = f"{API_GROUP}/revision"
EPOCH = f"{API_GROUP}/epoch"
CLAIM = f"{API_GROUP}/claim"
DEFAULTS = f"{API_GROUP}/defaults"
"""What the operator fills in where a spec is silent, so that `millrace plan` fills in the same."""
RESTART = f"{API_GROUP}/restart"
PAUSE = f"{API_GROUP}/pause"
FINGERPRINT = f"{API_GROUP}/fingerprint"

MANAGER = "millrace"
METRICS_PORT = 8090
SPEC_FOLDER = "/etc/millrace/job"
SPEC_FILE = "job.json"
STATE_FOLDER = "/var/lib/millrace/state"


@dataclass(frozen=True)
class Target:
    """An accepted version of a job. `spec` is what the user wrote, `job` the same, parsed."""

    job: StreamJob
    spec: Mapping[str, Any]
    revision: int = 1
    """Grows with each change that needs a restart: the driver's pod carries it."""
    epoch: int = 1
    """Grows with each change that needs new state: the checkpoint's folder carries it."""
    claim: int = 1
    """Grows when the checkpoint's volume itself must be another one."""
    restart: str = ""
    """The user's own wish for a restart: a new text is a new wish."""
    running: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.job.metadata.name

    @property
    def namespace(self) -> str:
        return self.job.metadata.namespace

    @property
    def claim_name(self) -> str:
        name = naming.checkpoint_claim(self.name)
        return name if self.claim == 1 else f"{name}-{self.claim}"

    @property
    def checkpoint(self) -> str:
        """The folder of the current state; an older epoch's state stays beside it."""
        declared = self.job.spec.checkpoint
        base = declared.uri.rstrip("/") if declared is not None and declared.uri is not None else STATE_FOLDER
        return f"{base}/epoch-{self.epoch}"

    @property
    def has_volume(self) -> bool:
        declared = self.job.spec.checkpoint
        return declared is None or declared.uri is None

    @property
    def secrets(self) -> list[str]:
        """The Secrets that the job's processes read."""
        found = {sink.postgres.secret.name for sink in self.job.spec.sinks if sink.postgres is not None}
        if self.job.spec.kafka.auth_secret is not None:
            found.add(self.job.spec.kafka.auth_secret.name)
        return sorted(found)


def labels(target: Target, role: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "millrace",
        "app.kubernetes.io/instance": target.name,
        MANAGED_BY: MANAGER,
        JOB_LABEL: target.name,
        ROLE_LABEL: role,
    }


def owner(target: Target) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": "StreamJob",
        "name": target.name,
        "uid": target.job.metadata.uid or "",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def metadata(target: Target, name: str, role: str, owned: bool = True) -> Manifest:
    return {
        "name": name,
        "namespace": target.namespace,
        "labels": labels(target, role),
        "annotations": {},
        "ownerReferences": [owner(target)] if owned else [],
    }
