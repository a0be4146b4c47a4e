"""The headless Service by which executors find their driver, and Prometheus its metrics."""

from millrace import naming
from millrace_operator.actions import Manifest
from millrace_operator.desired.spark import BLOCK_PORT, DRIVER_PORT
from millrace_operator.desired.target import JOB_LABEL, METRICS_PORT, ROLE_LABEL, Target, metadata


def headless(target: Target) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(target, naming.headless_service(target.name), "driver"),
        "spec": {
            "clusterIP": "None",
            # executors must find the driver before its first batch has made it ready
            "publishNotReadyAddresses": True,
            "selector": {JOB_LABEL: target.name, ROLE_LABEL: "driver"},
            "ports": [
                _port("driver", DRIVER_PORT),
                _port("blocks", BLOCK_PORT),
                _port("metrics", METRICS_PORT),
            ],
        },
    }


def _port(name: str, number: int) -> Manifest:
    return {"name": name, "port": number, "protocol": "TCP"}
