"""The image of a node: kind's own where it can be pulled and runs, else one that is built from packages and Go."""

import re
import shutil
from pathlib import Path

from millrace_cluster import fingerprints, tools
from millrace_cluster.bases import base_image
from millrace_cluster.docker import Docker
from millrace_cluster.machine import has_unified_cgroups, lacks_sys_resource
from millrace_cluster.progress import say, step

BUILT = "millrace/node"
PULL_SECONDS = 900.0
PARTS = ("Dockerfile", "control-plane-images", "default-cni.yaml", "pod-network.service")


def kind_image_fits(unified_cgroups: bool, sys_resource: bool) -> bool:
    """Whether kind's own image runs here: it needs cgroups of version 2, and pods that may lower their own score."""
    return unified_cgroups and sys_resource


def node_image(docker: Docker) -> str:
    """The image to make nodes from."""
    programs = docker.programs
    if kind_image_fits(has_unified_cgroups(), not lacks_sys_resource()):
        defaults = tools.kind_sources(programs) / "pkg/apis/config/defaults/image.go"
        name = tools.default_node_image(defaults.read_text())
        if docker.has_image(name) or _pull(docker, name):
            return name
        say("kind's node image cannot be pulled here, so one is built")
    name = f"{BUILT}:{_key()}"
    if not docker.has_image(name):
        _build(docker, name)
    return name


def _key() -> str:
    return fingerprints.of_files([tools.NODE_SOURCES / part for part in PARTS], tools.program_key(), tools.KIND)


def _pull(docker: Docker, name: str) -> bool:
    with step("pull kind's node image"):
        return docker.answers("pull", "--quiet", name, within_seconds=PULL_SECONDS)


def _build(docker: Docker, name: str) -> None:
    program = tools.node_program(docker.programs)
    base = base_image(docker)
    with step("build the node image (once, about 1 minute)"):
        folder = docker.programs.places.scratch / "node"
        _stage(docker, program, folder)
        docker.build(folder, name, BASE=base)
        shutil.rmtree(folder)


def _stage(docker: Docker, program: Path, folder: Path) -> None:
    """Everything that the Dockerfile copies, in one folder: our parts, the program, and kind's files of a node."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "kind").mkdir(parents=True)
    for part in PARTS:
        shutil.copy(tools.NODE_SOURCES / part, folder / part)
    shutil.copy(program, folder / "millrace-node")
    files = tools.kind_sources(docker.programs) / "images/base/files"
    for path in files.rglob("*"):
        if path.is_file() and path.relative_to(files).parts[0] in ("etc", "kind", "usr"):
            _copy(path, folder / "kind" / path.relative_to(files))
    kubeadm = folder / "kubeadm"
    kubeadm.symlink_to("millrace-node")
    listed = docker.programs.run([kubeadm, "config", "images", "list", "--kubernetes-version", tools.KUBERNETES])
    kubeadm.unlink()
    pause = sandbox_image((folder / "kind/etc/containerd/config.toml").read_text())
    (folder / "image-names").write_text("\n".join(sorted({*listed.split(), pause})) + "\n")
    (folder / "version").write_text(tools.KUBERNETES)


def sandbox_image(containerd_settings: str) -> str:
    """The image that holds a pod's namespaces, as kind's settings of containerd name it."""
    found = re.search(r'^\s*sandbox_image = "([^"]+)"', containerd_settings, re.MULTILINE)
    if found is None:
        raise ValueError("this version of kind names its sandbox image elsewhere")
    return found.group(1)


def _copy(source: Path, target: Path) -> None:
    """Go keeps sources read-only and never executable; a node needs some of them to run."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if target.parent.name == "bin" else 0o644)
