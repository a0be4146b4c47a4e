"""kind, Helm and the node program, built by Go into the cache folder, each once."""

import json
import re
import shutil
from pathlib import Path

from millrace_cluster import fingerprints
from millrace_cluster.machine import find_go
from millrace_cluster.places import SOURCES, Places
from millrace_cluster.programs import Programs
from millrace_cluster.progress import step

KIND = "sigs.k8s.io/kind@v0.33.0"
HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"
KUBERNETES = "v1.34.4"  # 1.35 and later refuse hosts with cgroups of version 1
NODE_SOURCES = SOURCES / "node"
BUILD_FLAGS = (
    "-trimpath",
    "-ldflags",
    f"-s -w -X k8s.io/component-base/version.gitVersion={KUBERNETES}"
    f" -X k8s.io/client-go/pkg/version.gitVersion={KUBERNETES}",
)


def install_kind(programs: Programs) -> None:
    _go_install(programs, "kind", KIND, "build kind")


def install_helm(programs: Programs) -> None:
    _go_install(programs, "helm", HELM, "build Helm (once, about 2 minutes)")


def _go_install(programs: Programs, name: str, module: str, what: str) -> None:
    bin_folder = programs.places.bin
    built = bin_folder / f".{name}-{module.rpartition('@')[2]}"  # the version is part of the mark, not of the name
    if built.exists() and (bin_folder / name).exists():
        return
    go = find_go(programs)
    bin_folder.mkdir(parents=True, exist_ok=True)
    with step(what):
        installer = programs.having(GOBIN=str(bin_folder), GOFLAGS="-buildvcs=false")
        installer.run([go, "install", module], folder=bin_folder)
    built.touch()


def kind_sources(programs: Programs) -> Path:
    """Where Go keeps the source of the kind that we use: it holds the files of a node, and the name of its image."""
    answer = programs.run([find_go(programs), "mod", "download", "-json", KIND], folder=programs.places.bin)
    return Path(json.loads(answer)["Dir"])


def default_node_image(defaults: str) -> str:
    """The name of the node image that this kind would pull, out of its own source."""
    found = re.search(r'^const Image = "([^"]+)"', defaults, re.MULTILINE)
    if found is None:
        raise ValueError("this version of kind keeps the name of its node image elsewhere")
    return found.group(1)


def program_key() -> str:
    sources = [NODE_SOURCES / name for name in ("main.go", "network.go", "go.mod", "go.sum")]
    return fingerprints.of_files(sources, *BUILD_FLAGS)


def node_program(programs: Programs) -> Path:
    """The one program of a node, built when its sources changed."""
    program = programs.places.node_programs / program_key() / "millrace-node"
    if not program.exists():
        _build(programs, program)
        _forget_older(program)
    _link_kubectl(programs.places, program)
    return program


def _build(programs: Programs, program: Path) -> None:
    go = find_go(programs)
    program.parent.mkdir(parents=True, exist_ok=True)
    fresh = program.with_suffix(".fresh")
    with step("build the node program (once, 5 to 10 minutes)"):
        compiler = programs.having(CGO_ENABLED="0", GOFLAGS="-buildvcs=false -mod=readonly")
        compiler.run([go, "build", *BUILD_FLAGS, "-o", fresh, "."], folder=NODE_SOURCES)
    fresh.rename(program)


def _forget_older(program: Path) -> None:
    for folder in program.parents[1].iterdir():
        if folder != program.parent:
            shutil.rmtree(folder, ignore_errors=True)


def _link_kubectl(places: Places, program: Path) -> None:
    places.bin.mkdir(parents=True, exist_ok=True)
    link = places.bin / "kubectl"
    fresh = places.bin / ".kubectl"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(program)
    fresh.rename(link)
