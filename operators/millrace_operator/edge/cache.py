"""What the watches told: the resources and everything that belongs to a job, by the job's key. Memory only."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from millrace_operator.actions import Manifest
from millrace_operator.desired.target import JOB_LABEL
from millrace_operator.streamjobs.state import Pod, parse_pod

Body = Mapping[str, Any]


class Key(NamedTuple):
    namespace: str
    name: str


def key_of(body: Body) -> Key:
    return Key(body["metadata"]["namespace"], body["metadata"]["name"])


def job_of(body: Body) -> Key | None:
    """The job that an object belongs to, by its label."""
    job = (body["metadata"].get("labels") or {}).get(JOB_LABEL)
    return Key(body["metadata"]["namespace"], job) if job else None


class Cache:
    """An older version never replaces a newer one: our own writes are put in before the watch tells of them."""

    def __init__(self) -> None:
        self.jobs: dict[Key, Manifest] = {}
        self._parts: dict[Key, dict[tuple[str, str], Manifest]] = {}
        self._pods: dict[Key, dict[str, tuple[int, Pod]]] = {}

    def put_job(self, body: Body) -> bool:
        """Whether it was news."""
        key = key_of(body)
        if not _is_newer(body, self.jobs.get(key)):
            return False
        self.jobs[key] = _slim(body)
        return True

    def drop_job(self, key: Key) -> None:
        self.jobs.pop(key, None)

    def put_part(self, body: Body) -> bool:
        key = job_of(body)
        if key is None:
            return False
        name = body["metadata"]["name"]
        if body["kind"] == "Pod":
            kept = self._pods.setdefault(key, {})
            if name in kept and version_of(body) <= kept[name][0] and kept[name][1].uid == body["metadata"]["uid"]:
                return False
            kept[name] = (version_of(body), parse_pod(body))
            return True
        parts = self._parts.setdefault(key, {})
        if not _is_newer(body, parts.get((body["kind"], name))):
            return False
        parts[body["kind"], name] = _slim(body)
        return True

    def drop_part(self, kind: str, body: Body) -> None:
        key, name = job_of(body), body["metadata"]["name"]
        if key is None:
            return
        if kind == "Pod":
            self._pods.get(key, {}).pop(name, None)
        else:
            self._parts.get(key, {}).pop((kind, name), None)

    def parts(self, key: Key) -> dict[tuple[str, str], Manifest]:
        return dict(self._parts.get(key, {}))

    def pods(self, key: Key) -> tuple[Pod, ...]:
        return tuple(pod for _, pod in self._pods.get(key, {}).values())

    def replace_parts(self, kind: str, bodies: Iterable[Body]) -> None:
        """A full list of one kind: what is not in it is gone, also when no watch said so."""
        bodies = list(bodies)
        there = {(job_of(body), body["metadata"]["name"]) for body in bodies}
        for key, kept in (self._pods if kind == "Pod" else {}).items():
            for name in [name for name in kept if (key, name) not in there]:
                del kept[name]
        for key, parts in (self._parts if kind != "Pod" else {}).items():
            for known in [one for one in parts if one[0] == kind and (key, one[1]) not in there]:
                del parts[known]
        for body in bodies:
            self.put_part(body)


def version_of(body: Body) -> int:
    return int(body["metadata"].get("resourceVersion") or 0)


def _is_newer(body: Body, kept: Manifest | None) -> bool:
    if kept is None or kept["metadata"]["uid"] != body["metadata"]["uid"]:
        return True
    return version_of(body) > version_of(kept)


def _slim(body: Body) -> Manifest:
    """Without the record of who set which field: it is often the larger half, and nobody here reads it."""
    meta = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return {**body, "metadata": meta}
