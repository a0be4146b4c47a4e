"""A real Kafka broker in a pod, from the job image's JRE and the jars of local mode, reachable from inside and outside.

Pods use `kafka.<namespace>.svc:9092`; tests on this machine use a port that kubectl forwards to it.
"""

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from millrace.kafka.clients import admin
from millrace.local.java import find_jars
from millrace_cluster.places import places
from tests.e2e.kube import Namespace, pod

START = """\
set -f
until [ -e /kafka/ready ]; do sleep 0.2; done
java="java -Xmx512m -XX:+UseSerialGC -cp /kafka/lib/*"
$java kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c /kafka/server.properties
exec $java kafka.Kafka /kafka/server.properties
"""


@dataclass(frozen=True)
class Kafka:
    """Where the broker is: for pods, and for this machine."""

    inside: str
    outside: str


@contextmanager
def broker(namespace: Namespace, image: str) -> Iterator[Kafka]:
    """A broker for as long as the block runs; its data goes with it."""
    port = _free_port()
    volume = {"name": "kafka", "emptyDir": {}}
    mount = {"volumeMounts": [{"name": "kafka", "mountPath": "/kafka"}]}
    namespace.create(_service(), pod("kafka", image, ["bash", "-c", START], container=mount, volumes=[volume]))
    namespace.wait_until_ready("kafka", 60)
    _copy(namespace.name, _properties(f"kafka.{namespace.name}.svc", port))
    with _forwarded(namespace.name, port):
        yield Kafka(f"kafka.{namespace.name}.svc:9092", f"127.0.0.1:{port}")


def _service() -> dict[str, Any]:
    spec = {"clusterIP": "None", "selector": {"app": "kafka"}, "ports": [{"name": "kafka", "port": 9092}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kafka"}, "spec": spec}


def _properties(host: str, port: int) -> Mapping[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"IN://:9092,CONTROLLER://:9093,OUT://:{port}",
        "advertised.listeners": f"IN://{host}:9092,OUT://127.0.0.1:{port}",
        "inter.broker.listener.name": "IN",
        "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": "/kafka/log",
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": str(16 * 2**20),
    }


def _copy(namespace: str, properties: Mapping[str, str]) -> None:
    """Jars and settings go in through the API server; the last file lets the broker start."""
    jars = Path(find_jars("broker"))
    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    exec_in = [*_kubectl(), "-n", namespace, "exec", "-i", "kafka", "--"]
    with subprocess.Popen(["tar", "c", "-C", str(jars), "."], stdout=subprocess.PIPE) as packed:
        unpack = [*exec_in, "bash", "-c", "mkdir -p /kafka/lib && tar x -C /kafka/lib"]
        subprocess.run(unpack, stdin=packed.stdout, check=True)
    subprocess.run([*exec_in, "bash", "-c", "cat > /kafka/server.properties"], input=text.encode(), check=True)
    subprocess.run([*exec_in, "touch", "/kafka/ready"], check=True)
    # kubectl stops forwarding a port at which nobody listens yet
    listens = "until (: > /dev/tcp/localhost/9092) 2>/dev/null; do sleep 0.2; done"
    subprocess.run([*exec_in, "timeout", "90", "bash", "-c", listens], check=True)


@contextmanager
def _forwarded(namespace: str, port: int) -> Iterator[None]:
    command = [*_kubectl(), "-n", namespace, "port-forward", "pod/kafka", f"{port}:{port}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as forward:
        try:
            _wait(f"127.0.0.1:{port}", forward)
            yield
        finally:
            forward.terminate()


def _wait(bootstrap: str, forward: "subprocess.Popen[bytes]", seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert forward.poll() is None, "kubectl port-forward ended"
        try:
            admin(bootstrap).list_topics(timeout=3)
        except KafkaException:
            continue
        return
    raise AssertionError(f"no broker answered at {bootstrap} in {seconds:.0f} s")


def _kubectl() -> list[str]:
    return [str(places().bin / "kubectl"), "--kubeconfig", str(places().kubeconfig)]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
