"""The StatefulSet of one that is a job's driver.

Kubernetes never starts its second pod before the first is gone, so two drivers never share a checkpoint.
"""

from typing import Any

from millrace import naming, units
from millrace_operator.actions import Manifest
from millrace_operator.desired import spark
from millrace_operator.desired.security import CONTAINER_SECURITY, POD_SECURITY
from millrace_operator.desired.target import (
    JOB_LABEL,
    METRICS_PORT,
    RESTART,
    REVISION,
    ROLE_LABEL,
    SPEC_FILE,
    SPEC_FOLDER,
    STATE_FOLDER,
    Target,
    labels,
    metadata,
)
from millrace_operator.settings import JobDefaults


def driver(target: Target, defaults: JobDefaults) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(target, naming.driver(target.name), "driver"),
        "spec": {
            "replicas": 1 if target.running else 0,
            "serviceName": naming.headless_service(target.name),
            "selector": {"matchLabels": {JOB_LABEL: target.name, ROLE_LABEL: "driver"}},
            # Parallel: a pod that never gets ready can still be replaced by a better version
            "podManagementPolicy": "Parallel",
            "revisionHistoryLimit": 2,
            "template": {"metadata": _pod_metadata(target), "spec": _pod(target, defaults)},
        },
    }


def _pod_metadata(target: Target) -> Manifest:
    """Only what is written here, and in the pod's spec, starts the driver anew."""
    wish = {RESTART: target.restart} if target.restart else {}
    return {"labels": labels(target, "driver"), "annotations": {REVISION: str(target.revision), **wish}}


def _pod(target: Target, defaults: JobDefaults) -> Manifest:
    return {
        "serviceAccountName": naming.service_account(target.name),
        "terminationGracePeriodSeconds": defaults.stop_seconds,
        "enableServiceLinks": False,  # hundreds of variables in a large namespace, none of them used
        "securityContext": POD_SECURITY,
        "containers": [_container(target, defaults)],
        "volumes": _volumes(target),
    }


def _container(target: Target, defaults: JobDefaults) -> Manifest:
    size = target.job.spec.driver
    memory = units.format_bytes(size.memory)
    return {
        "name": "driver",
        "image": size.image or defaults.image,
        "imagePullPolicy": defaults.pull_policy,
        "args": _arguments(target, defaults),
        "env": _environment(target),
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": units.format_cpu(size.cpu), "memory": memory}, "limits": {"memory": memory}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "metrics"}, "periodSeconds": 5, "timeoutSeconds": 3},
        "securityContext": CONTAINER_SECURITY,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(target),
    }


def _arguments(target: Target, defaults: JobDefaults) -> list[str]:
    options: dict[str, Any] = {
        "--spec": f"{SPEC_FOLDER}/{SPEC_FILE}",
        "--checkpoint": target.checkpoint,
        "--bootstrap": target.job.spec.kafka.bootstrap_servers or defaults.bootstrap_servers,
        "--metrics-port": METRICS_PORT,
        "--master": spark.MASTER,
        "--termination-log": "/dev/termination-log",
    }
    auth = target.job.spec.kafka.auth_secret
    if auth is not None:  # where it is mounted, not what is in it
        options["--kafka-auth"] = f"{naming.SECRETS_FOLDER}/{auth.name}"
    return ["driver", *(str(part) for option in options.items() for part in option)]


def _environment(target: Target) -> list[Manifest]:
    variables = {"SPARK_CONF_DIR": SPEC_FOLDER, naming.SECRETS_FOLDER_VARIABLE: naming.SECRETS_FOLDER}
    return [{"name": name, "value": value} for name, value in variables.items()]


def _volumes(target: Target) -> list[Manifest]:
    found: list[Manifest] = [{"name": "spec", "configMap": {"name": naming.config_map(target.name)}}]
    if target.has_volume:
        found.append({"name": "state", "persistentVolumeClaim": {"claimName": target.claim_name}})
    return found + [{"name": _volume_of(name), "secret": {"secretName": name}} for name in target.secrets]


def _mounts(target: Target) -> list[Manifest]:
    found: list[Manifest] = [{"name": "spec", "mountPath": SPEC_FOLDER, "readOnly": True}]
    if target.has_volume:
        found.append({"name": "state", "mountPath": STATE_FOLDER})
    secrets = [(name, f"{naming.SECRETS_FOLDER}/{name}") for name in target.secrets]
    return found + [{"name": _volume_of(name), "mountPath": path, "readOnly": True} for name, path in secrets]


def _volume_of(secret: str) -> str:
    return f"secret-{secret.replace('.', '-')}"[:63].rstrip("-")
