"""A small client of the API server: get, list, apply, delete, each with a deadline. It retries and decides nothing.

Own, because the operator needs six verbs on ten kinds: the official client's models would be most of its memory.
"""

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp

from millrace.resources.metadata import API_VERSION
from millrace_operator.actions import Manifest, Ref, ref_of
from millrace_operator.desired.target import MANAGER
from millrace_operator.edge.credentials import Credentials

PLURALS = {
    "StreamJob": (API_VERSION, "streamjobs"),
    "Topic": (API_VERSION, "topics"),
    "ConfigMap": ("v1", "configmaps"),
    "Service": ("v1", "services"),
    "ServiceAccount": ("v1", "serviceaccounts"),
    "Secret": ("v1", "secrets"),
    "Pod": ("v1", "pods"),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
    "Event": ("v1", "events"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "Role": ("rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings"),
    "Lease": ("coordination.k8s.io/v1", "leases"),
}
PAGE = 500  # objects per answer of a list: bounds the memory of one answer


class ApiError(Exception):
    """The API server said no; `status` is HTTP's, the text is its own sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class UnreachableError(Exception):
    """The API server did not answer in time, or not at all."""


def path_of(kind: str, namespace: str | None, name: str = "", subresource: str = "") -> str:
    version, plural = PLURALS[kind]
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    parts = [f"namespaces/{namespace}" if namespace else "", plural, name, subresource]
    return "/".join([root, *(part for part in parts if part)])


class Api:
    """One connection pool; use it as a context manager."""

    def __init__(self, credentials: Credentials, deadline: float) -> None:
        self._credentials = credentials
        self._deadline = aiohttp.ClientTimeout(total=deadline)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._credentials.context(), limit=32)
        self._session = aiohttp.ClientSession(connector=connector, timeout=self._deadline)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, ref: Ref) -> Manifest | None:
        try:
            found: Manifest = json.loads(await self.request("GET", path_of(ref.kind, ref.namespace, ref.name)))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return found

    async def list(self, kind: str, namespace: str | None = None, **selectors: str) -> list[Manifest]:
        """All objects of a kind, page by page; `labelSelector` and `fieldSelector` as the API names them."""
        found: list[Manifest] = []
        token = ""
        while True:
            asked = {**selectors, "limit": str(PAGE), **({"continue": token} if token else {})}
            answer = json.loads(await self.request("GET", path_of(kind, namespace), params=asked))
            found += [{"apiVersion": PLURALS[kind][0], "kind": kind, **item} for item in answer["items"]]
            token = answer["metadata"].get("continue", "")
            if not token:
                return found

    async def apply(self, manifest: Manifest, subresource: str = "") -> Manifest:
        """Server-side apply: what we leave out and had set before is taken out; others' fields stay."""
        ref = ref_of(manifest)
        asked = {"fieldManager": MANAGER, "force": "true"}
        kind = {"Content-Type": "application/apply-patch+yaml"}
        path = path_of(ref.kind, ref.namespace, ref.name, subresource)
        made: Manifest = json.loads(await self.request("PATCH", path, params=asked, headers=kind, body=manifest))
        return made

    async def merge(self, ref: Ref, body: Manifest) -> Manifest:
        """A merge patch, for single fields of objects that others own."""
        path, kind = path_of(ref.kind, ref.namespace, ref.name), {"Content-Type": "application/merge-patch+json"}
        made: Manifest = json.loads(
            await self.request("PATCH", path, params={"fieldManager": MANAGER}, headers=kind, body=body)
        )
        return made

    async def replace(self, manifest: Manifest) -> Manifest:
        """An update that fails with 409 when someone else was faster: resourceVersion must be in it."""
        ref = ref_of(manifest)
        path, kind = path_of(ref.kind, ref.namespace, ref.name), {"Content-Type": "application/json"}
        made: Manifest = json.loads(await self.request("PUT", path, headers=kind, body=manifest))
        return made

    async def create(self, manifest: Manifest) -> Manifest:
        ref = ref_of(manifest)
        kind = {"Content-Type": "application/json"}
        path = path_of(ref.kind, ref.namespace)
        made: Manifest = json.loads(await self.request("POST", path, headers=kind, body=manifest))
        return made

    async def delete(self, ref: Ref, uid: str | None = None, grace: int | None = None) -> None:
        """Gone already is as good."""
        body: dict[str, Any] = {"preconditions": {"uid": uid}} if uid else {}
        body |= {"gracePeriodSeconds": grace} if grace is not None else {}
        try:
            kind = {"Content-Type": "application/json"}
            await self.request("DELETE", path_of(ref.kind, ref.namespace, ref.name), headers=kind, body=body)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    async def request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        deadline: float | None = None,
    ) -> bytes:
        if self._session is None:
            raise RuntimeError("the client is not open")
        more: dict[str, Any] = {"timeout": aiohttp.ClientTimeout(total=deadline)} if deadline else {}
        sent = {**self._credentials.headers(), **(headers or {})}
        data = json.dumps(body).encode() if body is not None else None
        try:
            async with self._session.request(
                method, self._credentials.server + path, params=params, headers=sent, data=data, **more
            ) as answer:
                text = await answer.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise UnreachableError(f"the API server does not answer ({error or type(error).__name__})") from None
        if answer.status >= 400:
            raise ApiError(answer.status, _sentence(text))
        return text


def _sentence(text: bytes) -> str:
    try:
        return str(json.loads(text).get("message", ""))
    except (ValueError, AttributeError):
        return text.decode(errors="replace")[:500]
