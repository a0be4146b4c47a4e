"""An API server in memory, for what talks to one: objects with versions, conflicts, and outages on request."""

import copy

from millrace_operator.actions import Manifest, Ref
from millrace_operator.edge.api import Api, ApiError, UnreachableError, path_of


class MemoryApi(Api):
    """Keeps the last version of each object; an apply merges at the top level, which is enough for statuses."""

    def __init__(self) -> None:
        self.objects: dict[str, Manifest] = {}
        self.version = 0
        self.applied = 0
        self.away = False
        self.refuse: dict[str, int] = {}

    def _store(self, manifest: Manifest) -> Manifest:
        self.version += 1
        made = copy.deepcopy(manifest)
        made["metadata"]["resourceVersion"] = str(self.version)
        self.objects[_place(manifest)] = made
        return copy.deepcopy(made)

    def _check(self, kind: str) -> None:
        if self.away:
            raise UnreachableError("away")
        if kind in self.refuse:
            raise ApiError(self.refuse[kind], f"{kind} is refused")

    async def get(self, ref: Ref) -> Manifest | None:
        self._check("get")
        return copy.deepcopy(self.objects.get(path_of(ref.kind, ref.namespace, ref.name)))

    async def create(self, manifest: Manifest) -> Manifest:
        self._check(manifest["kind"])
        if _place(manifest) in self.objects:
            raise ApiError(409, "exists")
        return self._store(manifest)

    async def replace(self, manifest: Manifest) -> Manifest:
        self._check(manifest["kind"])
        if self.objects[_place(manifest)]["metadata"]["resourceVersion"] != manifest["metadata"]["resourceVersion"]:
            raise ApiError(409, "someone was faster")
        return self._store(manifest)

    async def apply(self, manifest: Manifest, subresource: str = "") -> Manifest:
        self._check(manifest["kind"])
        before = self.objects.get(_place(manifest), {})
        meta = {**before.get("metadata", {}), **manifest["metadata"]}
        self.applied += 1
        return self._store({**before, **manifest, "metadata": meta})


def _place(manifest: Manifest) -> str:
    meta = manifest["metadata"]
    return path_of(manifest["kind"], meta["namespace"], meta["name"])
