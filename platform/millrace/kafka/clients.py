"""Kafka clients as we use them everywhere: quiet on the terminal, because what fails is said once, as a sentence."""

from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

REQUEST_SECONDS = 30.0  # how long one request may take before it counts as failed


def settings(bootstrap: str, **more: Any) -> dict[str, Any]:
    """Settings that every client shares. librdkafka would print each lost connection to standard error."""
    return {"bootstrap.servers": bootstrap, "log_level": 0, "error_cb": _ignore} | more


def is_plaintext(bootstrap: str) -> bool:
    """Whether the cluster's brokers talk to anyone, without encryption and without a login."""
    return str(settings(bootstrap).get("security.protocol", "plaintext")).lower() == "plaintext"


def admin(bootstrap: str) -> AdminClient:
    """Keep a reference until the futures of its calls are done: a client that is collected cancels them."""
    return AdminClient(settings(bootstrap))


def producer(bootstrap: str, **more: Any) -> Producer:
    return Producer(settings(bootstrap, **more))


def consumer(bootstrap: str, group: str, **more: Any) -> Consumer:
    return Consumer(settings(bootstrap, **{"group.id": group} | more))


def _ignore(_error: object) -> None:
    """Connection errors show as the failure of the request that needed the connection."""
