"""The cluster itself: its nodes are ready, a service is found by its name, and volumes are seen from every node."""

from typing import Any

import pytest

from millrace_cluster.images import JOB, OPERATOR
from millrace_cluster.layout import NODES, STORAGE_CLASS
from tests.e2e.kube import Cluster, Namespace, is_ready, pod

pytestmark = pytest.mark.e2e

SECONDS = 60.0
SERVE = ["python", "-m", "http.server", "8080", "--directory", "/opt/millrace/own/millrace"]
FETCH = "import urllib.request as r; print(len(r.urlopen('http://{host}:8080/errors.py', timeout=20).read()))"


def test_both_nodes_are_ready(cluster: Cluster) -> None:
    nodes = cluster.nodes()

    assert sorted(node.metadata.name for node in nodes) == sorted(NODES)
    assert all(is_ready(node) for node in nodes)


def test_a_service_is_found_by_its_name_from_another_node(namespace: Namespace) -> None:
    probe = {"readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}
    server = pod("server", OPERATOR.name, SERVE, nodeName=NODES[0], container=probe)
    namespace.create(server, service("server", 8080))
    namespace.wait_until_ready("server", SECONDS)

    fetch = ["python", "-c", FETCH.format(host=f"server.{namespace.name}.svc.cluster.local")]
    namespace.create(pod("client", OPERATOR.name, fetch, nodeName=NODES[1]))

    assert int(namespace.wait_until_over("client", SECONDS)) > 100


def test_what_one_node_writes_to_a_shared_volume_another_node_reads(namespace: Namespace) -> None:
    namespace.create(claim("both"))

    namespace.create(on_volume("writer", NODES[0], "open('/shared/note', 'w').write('from the first node')"))
    namespace.wait_until_over("writer", SECONDS)
    namespace.create(on_volume("reader", NODES[1], "print(open('/shared/note').read())"))

    assert namespace.wait_until_over("reader", SECONDS).strip() == "from the first node"


def test_the_operator_image_has_no_java_and_the_job_image_no_operator(namespace: Namespace) -> None:
    look = "import importlib.util as u, shutil; print(shutil.which('java'), u.find_spec('pyspark'), u.find_spec('pip'))"
    namespace.create(pod("operator", OPERATOR.name, ["python", "-c", look]))
    look = "import importlib.util as u; print(u.find_spec('kopf'), u.find_spec('kubernetes'), u.find_spec('pip'))"
    namespace.create(pod("job", JOB.name, ["python", "-c", look]))

    assert namespace.wait_until_over("operator", SECONDS).split() == ["None"] * 3
    assert namespace.wait_until_over("job", SECONDS).split() == ["None"] * 3


def on_volume(name: str, node: str, code: str) -> dict[str, Any]:
    mounts = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    volumes = [{"name": "shared", "persistentVolumeClaim": {"claimName": "both"}}]
    return pod(name, OPERATOR.name, ["python", "-c", code], nodeName=node, volumes=volumes, container=mounts)


def claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": STORAGE_CLASS,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def service(name: str, port: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": port}]},
    }
