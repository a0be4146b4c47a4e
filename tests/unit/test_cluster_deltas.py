"""A change of our code goes into the nodes as what changed, not as a gigabyte."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from millrace_cluster import deltas

pytestmark = pytest.mark.unit

LAYERS = [b"base" * 300, b"dependencies" * 300, b"our code" * 30]


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def saved(layers: list[bytes]) -> io.BytesIO:
    """What `docker save` streams: layers in any order, the settings among them, the manifest last."""
    settings = json.dumps({"rootfs": {"diff_ids": [digest(layer) for layer in layers]}}).encode()
    files = {f"{number}abc/layer.tar": layer for number, layer in reversed(list(enumerate(layers)))}
    files |= {"0abc/json": b"{}", "f00d.json": settings, "manifest.json": b"[]", "repositories": b"{}"}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    stream.seek(0)
    return stream


def contents(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {member.name: opened.extractfile(member).read() for member in opened}  # type: ignore[union-attr]


def test_only_the_new_layer_is_in_the_archive_but_the_manifest_names_all(tmp_path: Path) -> None:
    present = [digest(layer) for layer in LAYERS[:2]]

    assert deltas.write(saved(LAYERS), "millrace/job:dev", present, tmp_path / "delta.tar")

    found = contents(tmp_path / "delta.tar")
    (image,) = json.loads(found["index.json"])["manifests"]
    manifest = json.loads(found[f"blobs/{image['digest'].replace(':', '/')}"])
    assert image["annotations"] == {"io.containerd.image.name": "docker.io/millrace/job:dev"}
    assert [layer["digest"] for layer in manifest["layers"]] == [digest(layer) for layer in LAYERS]
    assert [layer["size"] for layer in manifest["layers"]] == [len(layer) for layer in LAYERS]
    carried = [layer for layer in LAYERS if f"blobs/{digest(layer).replace(':', '/')}" in found]
    assert carried == [LAYERS[2]]


def test_a_large_new_layer_is_no_small_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deltas, "LARGEST_KEPT", 500)

    assert not deltas.write(saved(LAYERS), "millrace/job:dev", [digest(LAYERS[0])], tmp_path / "delta.tar")
    assert not (tmp_path / "delta.tar").exists()


def test_a_stream_in_another_layout_is_left_to_the_whole_load(tmp_path: Path) -> None:
    stream = io.BytesIO()
    tarfile.open(fileobj=stream, mode="w").close()
    stream.seek(0)

    assert not deltas.write(stream, "millrace/job:dev", [], tmp_path / "delta.tar")
