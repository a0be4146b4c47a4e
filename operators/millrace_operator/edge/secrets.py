"""Credentials for Kafka clusters, from the Secrets that specs name: read by name when they are needed, never listed.

Read again now and then, so that a changed Secret takes effect by itself. Nothing in here logs what it read.
"""

import base64
import binascii
import time

from millrace.errors import UserError
from millrace.kafka.security import Security, parse_security
from millrace_operator.actions import Ref
from millrace_operator.edge.api import Api, ApiError, UnreachableError
from millrace_operator.edge.brokers import ClusterError
from millrace_operator.topics.state import Cluster

FRESH_SECONDS = 15.0  # how long a Secret is taken to be what it was; a look at topics asks for it several times

FORBIDDEN = 403


class Secrets:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[Cluster, tuple[float, Security]] = {}

    async def security(self, cluster: Cluster) -> Security | None:
        """None where the spec names no Secret. Raises ClusterError where there is none, or none that can be used."""
        if cluster.secret is None:
            return None
        at, known = self._known.get(cluster, (0.0, None))
        if known is not None and time.monotonic() - at < FRESH_SECONDS:
            return known
        try:
            found = await self._read(cluster.namespace, cluster.secret)
        except UnreachableError as error:
            if known is not None:
                return known
            raise ClusterError("SecretUnreadable", f"{_named(cluster)} cannot be read: {error}.") from None
        self._known[cluster] = (time.monotonic(), found)
        return found

    async def _read(self, namespace: str, name: str) -> Security:
        where = f"Secret {namespace}/{name}"
        try:
            body = await self._api.get(Ref("v1", "Secret", namespace, name))
        except ApiError as error:
            hint = "; set kafka.readSecrets of the chart" if error.status == FORBIDDEN else ""
            raise ClusterError("SecretUnreadable", f"{where} cannot be read ({error}){hint}.") from None
        if body is None:
            raise ClusterError("SecretMissing", f"{where} is not there: make it, or name another in authSecret.")
        try:
            return parse_security({key: _decoded(value) for key, value in (body.get("data") or {}).items()}, where)
        except UserError as error:
            raise ClusterError("SecretUnusable", str(error)) from None


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""  # a key that is no text is none of ours; one of ours is then told as missing


def _named(cluster: Cluster) -> str:
    return f"Secret {cluster.namespace}/{cluster.secret}"
