"""Spark's settings for a driver that asks Kubernetes for its executors. Only text; nothing here starts Spark."""

import json

from millrace import naming, units
from millrace_operator.desired.security import CONTAINER_SECURITY, POD_SECURITY
from millrace_operator.desired.target import (
    JOB_LABEL,
    MANAGED_BY,
    MANAGER,
    ROLE_LABEL,
    SPEC_FOLDER,
    STATE_FOLDER,
    Target,
)
from millrace_operator.settings import JobDefaults

MASTER = "k8s://https://kubernetes.default.svc:443"
HEAP_SHARE = 0.6  # of a process's memory; the rest is for Python workers, Arrow and RocksDB, which live beside the heap
DRIVER_PORT = 7078
BLOCK_PORT = 7079
TEMPLATE_FILE = "executor.json"


def defaults(target: Target, settings: JobDefaults) -> str:
    """The text of spark-defaults.conf."""
    pairs = _driver(target) | _executors(target, settings) | _volume(target)
    return "".join(f"{key} {value}\n" for key, value in sorted(pairs.items()))


def executor_template() -> str:
    """What Spark has no setting for: executors are as locked down as the driver, and need no API server."""
    spec = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": POD_SECURITY,
        "containers": [{"name": "executor", "securityContext": CONTAINER_SECURITY}],
    }
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": spec})


def heap(memory: int) -> int:
    """Of so many bytes, the heap in MiB."""
    return int(memory * HEAP_SHARE / 2**20)


def _driver(target: Target) -> dict[str, str]:
    service = naming.headless_service(target.name)
    return {
        "spark.driver.host": f"{naming.driver_pod(target.name)}.{service}.{target.namespace}.svc",
        "spark.driver.bindAddress": "0.0.0.0",  # noqa: S104  the pod's own network; executors come in by its name
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_PORT),
        "spark.driver.memory": f"{heap(target.job.spec.driver.memory)}m",
        "spark.kubernetes.driver.pod.name": naming.driver_pod(target.name),
        "spark.kubernetes.namespace": target.namespace,
        # what the driver's role does not allow, because a streaming job does not need it
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.kubernetes.executor.disableConfigMap": "true",
    }


def _executors(target: Target, settings: JobDefaults) -> dict[str, str]:
    wanted = target.job.spec.executors
    inside = heap(wanted.memory)
    cores = max(1, int(wanted.cpu))
    label = "spark.kubernetes.executor.label"
    return {
        "spark.dynamicAllocation.enabled": "false",
        "spark.executor.instances": str(wanted.instances),
        "spark.executor.cores": str(cores),
        "spark.executor.memory": f"{inside}m",
        "spark.executor.memoryOverhead": f"{wanted.memory // 2**20 - inside}m",
        "spark.kubernetes.executor.request.cores": units.format_cpu(wanted.cpu),
        "spark.kubernetes.container.image": target.job.spec.driver.image or settings.image,
        "spark.kubernetes.container.image.pullPolicy": settings.pull_policy,
        "spark.kubernetes.executor.podNamePrefix": naming.executor_prefix(target.name),
        "spark.kubernetes.executor.podTemplateFile": f"{SPEC_FOLDER}/{TEMPLATE_FILE}",
        f"{label}.{MANAGED_BY}": MANAGER,
        f"{label}.{JOB_LABEL}": target.name,
        f"{label}.{ROLE_LABEL}": "executor",
    } | _secrets(target)


def _secrets(target: Target) -> dict[str, str]:
    folder = naming.SECRETS_FOLDER
    mounted = {f"spark.kubernetes.executor.secrets.{name}": f"{folder}/{name}" for name in target.secrets}
    return mounted | {f"spark.executorEnv.{naming.SECRETS_FOLDER_VARIABLE}": folder} if mounted else {}


def _volume(target: Target) -> dict[str, str]:
    """Executors write state straight into the checkpoint, so they see the same folder as the driver."""
    if not target.has_volume:
        return {}
    prefix = "spark.kubernetes.executor.volumes.persistentVolumeClaim.state"
    return {f"{prefix}.mount.path": STATE_FOLDER, f"{prefix}.options.claimName": target.claim_name}
