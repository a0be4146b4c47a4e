"""Spark on the cluster: a driver pod in client mode gets two executor pods, one on each node, and finishes a job."""

import json
from pathlib import Path
from typing import Any

import pytest

from millrace_cluster.images import JOB
from tests.e2e.kube import RESTRICTED, Namespace, pod
from tests.e2e.spark_probe import NUMBERS
from tests.e2e.test_cluster import claim

pytestmark = pytest.mark.e2e

PROBE = Path(__file__).with_name("spark_probe.py")
SECONDS = 150.0
EXECUTORS = {"spark-role": "executor"}


def test_a_driver_gets_two_executors_and_finishes(namespace: Namespace) -> None:
    namespace.create(*rights(), claim("checkpoints"), probe_files(), driver())

    report = json.loads(namespace.wait_until_over("driver", SECONDS).splitlines()[-1])

    assert report["total"] == sum(range(NUMBERS))
    assert len(report["executors"]) == 2
    assert report["files"] == report["executors"], "the driver sees what executors on both nodes wrote"
    assert not [p for p in namespace.pods("spark-role=executor") if not p.metadata.deletion_timestamp]


def driver() -> dict[str, Any]:
    fields = {"POD_IP": "status.podIP", "POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}
    known = {"IMAGE": JOB.name, "CLAIM": "checkpoints"}
    container = {
        "env": [
            *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()),
            *({"name": name, "value": value} for name, value in known.items()),
        ],
        "resources": {"requests": {"cpu": "200m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
        "volumeMounts": [
            {"name": "probe", "mountPath": "/probe"},
            {"name": "checkpoints", "mountPath": "/checkpoints"},
        ],
    }
    volumes = [
        {"name": "probe", "configMap": {"name": "probe"}},
        {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}},
    ]
    command = ["python", "/probe/probe.py"]
    return pod("driver", JOB.name, command, container=container, volumes=volumes, serviceAccountName="driver")


def probe_files() -> dict[str, Any]:
    data = {"probe.py": PROBE.read_text(), "executor.json": json.dumps(executor_template())}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}, "data": data}


def executor_template() -> dict[str, Any]:
    """What Spark does not say of its executors: they keep to the restricted standard, and apart from each other."""
    apart = {"labelSelector": {"matchLabels": EXECUTORS}, "topologyKey": "kubernetes.io/hostname"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            "containers": [{"name": "executor", "securityContext": RESTRICTED}],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
        },
    }


def rights() -> list[dict[str, Any]]:
    """What Spark's driver may do in its own namespace: executors, and the files it gives them."""
    rule = {
        "apiGroups": [""],
        "resources": ["pods", "configmaps", "services", "persistentvolumeclaims"],
        "verbs": ["create", "get", "list", "watch", "patch", "delete", "deletecollection"],
    }
    group = "rbac.authorization.k8s.io"
    meta = {"name": "driver"}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": [rule]},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "driver"},
            "subjects": [{"kind": "ServiceAccount", "name": "driver"}],
        },
    ]
