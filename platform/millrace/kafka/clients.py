"""Kafka clients as we use them everywhere: quiet on the terminal, because what fails is said once, as a sentence."""

from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from millrace.kafka.security import Security

REQUEST_SECONDS = 30.0  # how long one request may take before it counts as failed


def settings(bootstrap: str, security: Security | None = None, /, **more: Any) -> dict[str, Any]:
    """Settings that every client shares. librdkafka would print each lost connection to standard error."""
    secured = security.client_settings() if security is not None else {}
    return {"bootstrap.servers": bootstrap, "log_level": 0, "error_cb": _ignore} | secured | more


def admin(bootstrap: str, security: Security | None = None) -> AdminClient:
    """Keep a reference until the futures of its calls are done: a client that is collected cancels them."""
    return AdminClient(settings(bootstrap, security))


def producer(bootstrap: str, security: Security | None = None, /, **more: Any) -> Producer:
    return Producer(settings(bootstrap, security, **more))


def consumer(bootstrap: str, group: str, security: Security | None = None, /, **more: Any) -> Consumer:
    return Consumer(settings(bootstrap, security, **{"group.id": group} | more))


def _ignore(_error: object) -> None:
    """Connection errors show as the failure of the request that needed the connection."""
