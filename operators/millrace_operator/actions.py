"""What a plan consists of: frozen actions on Kubernetes, each with a line that tells a person what it does.

Only `edge.apply` carries them out.
"""

from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Ref:
    """One object in Kubernetes."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def ref_of(manifest: Manifest) -> Ref:
    meta = manifest["metadata"]
    return Ref(manifest["apiVersion"], manifest["kind"], meta["namespace"], meta["name"])


@dataclass(frozen=True)
class Apply:
    """Make the object be as the manifest says (server-side apply)."""

    manifest: Manifest
    why: str

    def __str__(self) -> str:
        return f"{ref_of(self.manifest)}: {self.why}"


@dataclass(frozen=True)
class Delete:
    """Remove the object; with `uid`, only that very one. `grace`: seconds for a pod to stop, if not its own."""

    ref: Ref
    why: str
    uid: str | None = None
    grace: int | None = None

    def __str__(self) -> str:
        return f"{self.ref}: {self.why}"


@dataclass(frozen=True)
class Finalizers:
    """Make the operator's finalizers of a resource exactly these."""

    ref: Ref
    uid: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.ref}: {'hold it until it has stopped' if self.names else 'let it go'}"


@dataclass(frozen=True)
class Annotate:
    """Set one annotation of a resource; None removes it. With `version`, only of that very version."""

    ref: Ref
    key: str
    value: str | None
    version: str | None = None

    def __str__(self) -> str:
        return f"{self.ref}: annotation {self.key}"


@dataclass(frozen=True)
class WriteStatus:
    """Replace the status of a resource."""

    ref: Ref
    status: Manifest

    def __str__(self) -> str:
        return f"{self.ref}: status"


@dataclass(frozen=True)
class Warn:
    """Post an event about a resource: a warning, unless it is `normal`."""

    ref: Ref
    uid: str
    reason: str
    message: str
    at: str
    normal: bool = False

    def __str__(self) -> str:
        return f"{self.ref}: {'event' if self.normal else 'warning'} {self.reason}: {self.message}"


Action = Apply | Delete | Finalizers | Annotate | WriteStatus | Warn
