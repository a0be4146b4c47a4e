"""kopf, and nothing but kopf: it watches and wakes. No logic, no patches, no finalizers of its own."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol

import kopf

from millrace_operator.desired.target import MANAGED_BY, MANAGER
from millrace_operator.edge.api import PLURALS
from millrace_operator.edge.credentials import Credentials

PARTS = (
    "ConfigMap",
    "Service",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "PersistentVolumeClaim",
    "StatefulSet",
    "Pod",
)
INACTIVITY_SECONDS = 70.0  # the API server sends a bookmark every 60 s; a watch that is quieter is dead
REQUEST_SECONDS = 30.0


class Listener(Protocol):
    """Who is told. A body of None in `gone` never happens: the last known body comes with a deletion."""

    def seen(self, kind: str, body: Mapping[str, Any]) -> None: ...
    def gone(self, kind: str, body: Mapping[str, Any]) -> None: ...


def registry(listener: Listener, credentials: Credentials) -> kopf.OperatorRegistry:
    """A handler for each kind; each of them only passes on."""
    made = kopf.OperatorRegistry()

    @kopf.on.login(registry=made)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return credentials.for_kopf()

    for kind in ("StreamJob", "Topic", *PARTS):
        _handle(made, kind, listener)
    return made


def _handle(made: kopf.OperatorRegistry, kind: str, listener: Listener) -> None:
    version, plural = PLURALS[kind]
    group, _, name = version.rpartition("/")

    async def handler(type: str | None, body: kopf.Body, **_: Any) -> None:
        whole = {"apiVersion": version, "kind": kind, **dict(body)}
        if type == "DELETED":
            listener.gone(kind, whole)
        else:
            listener.seen(kind, whole)

    kopf.on.event(group, name, plural, registry=made, id=f"watch-{plural}")(handler)


def settings() -> kopf.OperatorSettings:
    """Deadlines everywhere; no events of kopf's own; only our own parts are watched."""
    made = kopf.OperatorSettings()
    made.watching.inactivity_timeout = INACTIVITY_SECONDS
    made.watching.connect_timeout = REQUEST_SECONDS
    made.networking.request_timeout = REQUEST_SECONDS
    made.networking.connect_timeout = REQUEST_SECONDS
    made.posting.enabled = False
    made.scanning.disabled = True
    for kind in PARTS:
        version, plural = PLURALS[kind]
        group, _, name = version.rpartition("/")
        made.watching.label_selectors[group, name, plural] = f"{MANAGED_BY}={MANAGER}"
    return made


def quiet() -> None:
    """kopf tells of every event it sees; only what went wrong is worth a line."""
    logging.getLogger("kopf").setLevel(logging.WARNING)
