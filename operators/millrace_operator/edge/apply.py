"""The only writer: carries out the actions of a plan, in their order, by server-side apply with one field manager."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from millrace_operator.actions import (
    Action,
    Annotate,
    Apply,
    Delete,
    Finalizers,
    Manifest,
    Ref,
    Warn,
    WriteStatus,
)
from millrace_operator.edge.api import Api, ApiError

GONE = frozenset([404, 409])
REFUSED = frozenset([400, 403, 422])


class NotLeaderError(Exception):
    """Someone else may be acting by now, so nothing is written."""


@dataclass(frozen=True)
class Done:
    """What came of a plan: the objects as they are now, and what the API server refused."""

    written: tuple[Manifest, ...]
    refusals: tuple[str, ...]


class Writer:
    """Writes only while `may_write` says so: a leader whose lease ran out stops in the middle of a plan."""

    def __init__(self, api: Api, may_write: Callable[[], bool]) -> None:
        self._api = api
        self.may_write = may_write

    async def carry_out(self, actions: Iterable[Action]) -> Done:
        """One refused object does not keep the status from being written: it is what tells of it."""
        written: list[Manifest] = []
        refusals: list[str] = []
        for action in actions:
            if not self.may_write():
                raise NotLeaderError
            try:
                made = await self._one(action)
            except ApiError as error:
                if error.status not in REFUSED or isinstance(action, WriteStatus | Finalizers):
                    raise
                refusals.append(f"{action}: {error}")
            else:
                written += [made] if made is not None else []
        return Done(tuple(written), tuple(refusals))

    async def _one(self, action: Action) -> Manifest | None:
        match action:
            case Apply(manifest):
                return await self._api.apply(manifest)
            case WriteStatus(ref, status):
                return await self._api.apply({**_named(ref), "status": status}, "status")
            case Finalizers(ref, uid, names):
                return await self._finalizers(ref, uid, names)
            case Annotate(ref, key, value, version):
                guard = {"resourceVersion": version} if version else {}
                return await self._api.merge(ref, {"metadata": {"annotations": {key: value}, **guard}})
            case Delete(ref, _, uid, grace):
                await self._api.delete(ref, uid, grace)
            case Warn():
                await self._warn(action)
        return None

    async def _finalizers(self, ref: Ref, uid: str, names: tuple[str, ...]) -> Manifest | None:
        """The uid keeps an apply from making anew what was deleted meanwhile."""
        body = _named(ref)
        body["metadata"] |= {"uid": uid, "finalizers": list(names)}
        try:
            return await self._api.apply(body)
        except ApiError as error:
            if error.status in GONE:
                return None
            raise

    async def _warn(self, warning: Warn) -> None:
        """The event's name follows from what it says, so that the same one is never posted twice."""
        try:
            await self._api.create(event(warning))
        except ApiError as error:
            if error.status not in (403, 409):  # there already, or the namespace is being deleted
                raise


def event(warning: Warn) -> Manifest:
    ref = warning.ref
    mark = hashlib.sha256(f"{warning.uid}{warning.reason}{warning.message}{warning.at}".encode()).hexdigest()[:16]
    involved = {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
        "uid": warning.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{ref.name}.{mark}", "namespace": ref.namespace},
        "involvedObject": involved,
        "type": "Normal" if warning.normal else "Warning",
        "reason": warning.reason,
        "message": warning.message[:1024] or warning.reason,
        "firstTimestamp": warning.at,
        "lastTimestamp": warning.at,
        "count": 1,
        "source": {"component": "millrace"},
        "reportingComponent": "millrace.io/operator",
        "reportingInstance": "millrace",
    }


def _named(ref: Ref) -> Manifest:
    return {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "metadata": {"name": ref.name, "namespace": ref.namespace},
    }
