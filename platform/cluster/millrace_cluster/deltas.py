"""An image as an archive without the layers that the nodes have already: a change of our code is a few megabytes.

Reads what `docker save` streams, writes the Open Container Initiative's layout. Knows nothing of nodes.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO

LARGEST_KEPT = 64 * 2**20  # a new layer larger than this is no small change: the whole image is loaded then
LAYER = "application/vnd.oci.image.layer.v1.tar"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True)
class Blob:
    """A part of an image; without its bytes where the nodes have it."""

    digest: str
    size: int
    content: bytes | None

    def described(self, kind: str) -> dict[str, object]:
        return {"mediaType": kind, "digest": self.digest, "size": self.size}


def of_bytes(content: bytes) -> Blob:
    return Blob(f"sha256:{hashlib.sha256(content).hexdigest()}", len(content), content)


def write(saved: IO[bytes], name: str, present: Collection[str], target: Path) -> bool:
    """Write the archive of what is not present in the nodes. False when that is too much, or not known."""
    layers, settings = _read(saved, present)
    if settings is None:
        return False
    wanted: list[str] = json.loads(settings.content or b"")["rootfs"]["diff_ids"]
    if any(digest not in layers or (layers[digest].content is None and digest not in present) for digest in wanted):
        return False
    _write(target, name, settings, [layers[digest] for digest in wanted])
    return True


def _read(saved: IO[bytes], present: Collection[str]) -> tuple[dict[str, Blob], Blob | None]:
    """All layers by their digest, and the image's settings. Every byte goes by once; only small news is kept."""
    layers: dict[str, Blob] = {}
    settings: Blob | None = None
    with tarfile.open(fileobj=saved, mode="r|") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            if member.name.endswith("/layer.tar"):
                layer = _layer(file, member.size, present)
                layers[layer.digest] = layer
            elif "/" not in member.name and member.name not in ("manifest.json", "repositories"):
                settings = of_bytes(file.read())
    return layers, settings


def _layer(file: IO[bytes], size: int, present: Collection[str]) -> Blob:
    digest = hashlib.sha256()
    kept = io.BytesIO()
    while chunk := file.read(2**20):
        digest.update(chunk)
        if size <= LARGEST_KEPT:
            kept.write(chunk)
    name = f"sha256:{digest.hexdigest()}"
    return Blob(name, size, kept.getvalue() if size <= LARGEST_KEPT and name not in present else None)


def _write(target: Path, name: str, settings: Blob, layers: list[Blob]) -> None:
    manifest = of_bytes(
        _json(
            schemaVersion=2,
            mediaType=MANIFEST,
            config=settings.described(CONFIG),
            layers=[layer.described(LAYER) for layer in layers],
        )
    )
    named = {**manifest.described(MANIFEST), "annotations": {"io.containerd.image.name": f"docker.io/{name}"}}
    with tarfile.open(target, "w") as archive:
        _add(archive, "oci-layout", _json(imageLayoutVersion="1.0.0"))
        for blob in (settings, manifest, *layers):
            if blob.content is not None:
                _add(archive, f"blobs/{blob.digest.replace(':', '/')}", blob.content)
        _add(archive, "index.json", _json(schemaVersion=2, manifests=[named]))


def _json(**content: object) -> bytes:
    return json.dumps(content).encode()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
