"""How much a job's pods may do on their node: as little as Kubernetes' strictest standard asks for."""

from millrace_operator.actions import Manifest

POD_SECURITY: Manifest = {
    "runAsNonRoot": True,
    "fsGroup": 10001,  # the user of our images; a volume that heeds it becomes writable for them
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY: Manifest = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
