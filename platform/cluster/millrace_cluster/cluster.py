"""Brings the cluster up and takes it down. Every step looks first at what is there, so both can be repeated."""

import fcntl
import json
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from millrace.errors import UserError
from millrace_cluster import bridges, fingerprints, images, layout, leftovers, state, tools, volumes
from millrace_cluster import docker as daemons
from millrace_cluster.docker import Docker
from millrace_cluster.kubectl import Kubectl
from millrace_cluster.machine import check_may_start_docker
from millrace_cluster.nodes import node_image
from millrace_cluster.places import NAME, Places
from millrace_cluster.programs import Programs
from millrace_cluster.progress import say, step

NETWORK = "kind"
NODES_LABEL = f"label=io.x-k8s.kind.cluster={NAME}"
READY = "180s"
LOAD_SECONDS = 120.0


@contextmanager
def alone(places: Places) -> Iterator[None]:
    """One command at a time; the second one waits, and says so."""
    places.cache.mkdir(parents=True, exist_ok=True)
    with places.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another command is at work on the cluster; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def up(programs: Programs) -> None:
    """A cluster with two nodes that are ready, shared volumes, and a kubeconfig."""
    places = programs.places
    _forget_scratch(places)
    if daemons.connect(programs) is None:
        check_may_start_docker()  # what cannot be had is said before anything is made
    tools.install_kind(programs)
    docker = _docker(programs)
    image = node_image(docker)
    config = layout.kind_config(places.volumes)
    key = fingerprints.of_files([], image, json.dumps(config, sort_keys=True))
    if not _is_up(docker, key):
        _create(docker, image, config, key)
    _write_kubeconfig(docker)
    volumes.prepare(Kubectl(docker), places.volumes)
    tools.install_helm(programs)


def load(docker: Docker, names: Sequence[str]) -> None:
    """Bring images from Docker into every node; those that are there already are left alone."""
    path = docker.programs.places.state
    for name in names:
        identity = docker.image_id(name)
        recorded = state.load(path) or state.State()
        if recorded.loaded.get(name) == identity:
            continue
        with step(f"load the image {name} into the nodes"):
            _load(docker, name, recorded)
        loaded = {**recorded.loaded, name: identity}
        state.save(path, recorded.having(loaded=loaded, layers={**recorded.layers, name: images.layers(docker, name)}))


def _load(docker: Docker, name: str, recorded: state.State) -> None:
    """Only what changed, where the nodes have most of it already; else the whole image."""
    present = [layer for listed in recorded.layers.values() for layer in listed]
    small = images.delta(docker, name, present) if name in recorded.layers else None
    if small is not None and docker.programs.answers(_load_command(small), within_seconds=LOAD_SECONDS):
        return
    docker.programs.run(_load_command(images.archive(docker, name)))


def _load_command(archive: Path) -> list[str]:
    return ["kind", "load", "image-archive", str(archive), "--name", NAME]


def build_images(docker: Docker) -> None:
    for image in images.IMAGES:
        images.build(docker, image)


def down(programs: Programs) -> None:
    """Everything that `up` made, also what a killed `up` left. The cache folder keeps what makes the next one quick."""
    places = programs.places
    recorded = state.load(places.state)
    _end_orphans(programs)
    docker = daemons.connect(programs)
    if recorded is not None and recorded.own_docker and not (docker and docker.own):
        docker = _revive(programs, recorded)
    if docker is not None:
        _delete_nodes(docker, network=recorded is not None and recorded.made_network)
    if recorded is not None and recorded.own_docker:
        with step("stop our Docker daemon and clear up after it"):
            daemons.stop(programs)
            _clear(programs)
    shutil.rmtree(places.live, ignore_errors=True)


def require(programs: Programs) -> Docker:
    """The daemon that carries the cluster, or one sentence."""
    docker = daemons.connect(programs)
    recorded = state.load(programs.places.state)
    if docker is None or recorded is None or not recorded.cluster:
        raise UserError("There is no cluster: run 'make cluster' first.")
    return docker


def status(programs: Programs) -> str:
    docker = require(programs)
    return Kubectl(docker).run("get", "nodes", "--output", "wide")


def _docker(programs: Programs) -> Docker:
    found = daemons.connect(programs)
    recorded = state.load(programs.places.state)
    if found is None:
        if daemons.is_running(programs):
            raise UserError("Our Docker daemon runs but does not answer: run 'make cluster-down', then 'make cluster'.")
        if recorded is not None and recorded.own_docker:
            say("the last cluster was not taken down; clearing up after it")
            _clear(programs)
        return daemons.start(programs, recorded)
    if recorded is None:
        made_network = not found.answers("network", "inspect", NETWORK)
        state.save(programs.places.state, state.State(own_docker=False, made_network=made_network))
    return found


def _is_up(docker: Docker, key: str) -> bool:
    recorded = state.load(docker.programs.places.state)
    if recorded is None or recorded.cluster != key:
        return False
    if Kubectl(docker).answers("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=90s", within_seconds=120):
        return True
    say("the nodes are there but not ready, so they are made again")
    return False


def _create(docker: Docker, image: str, config: dict[str, object], key: str) -> None:
    places = docker.programs.places
    recorded = state.load(places.state) or state.State()
    recorded = state.save(places.state, recorded.having(cluster="", loaded={}, layers={}))
    _delete_nodes(docker, network=False)
    shutil.rmtree(places.volumes, ignore_errors=True)
    places.volumes.mkdir(parents=True)
    if docker.own:
        bridges.make(docker, NETWORK)
    with step("make the nodes (about 30 seconds)"):
        create = ["kind", "create", "cluster", "--config", "-", "--image", image]
        docker.programs.run([*create, "--kubeconfig", str(places.kubeconfig)], stdin=json.dumps(config))
        kubectl = Kubectl(docker)
        kubectl.run("wait", "--for=condition=Ready", "nodes", "--all", f"--timeout={READY}")
        kubectl.run("--namespace", "kube-system", "rollout", "status", "deployment/coredns", f"--timeout={READY}")
    state.save(places.state, recorded.having(cluster=key))


def _write_kubeconfig(docker: Docker) -> None:
    kubeconfig = str(docker.programs.places.kubeconfig)
    docker.programs.run(["kind", "export", "kubeconfig", "--name", NAME, "--kubeconfig", kubeconfig])


def _delete_nodes(docker: Docker, network: bool) -> None:
    nodes = docker.run("ps", "--all", "--quiet", "--filter", NODES_LABEL).split()
    if nodes:
        with step("remove the nodes"):
            docker.run("rm", "--force", "--volumes", *nodes)
    if network:
        docker.answers("network", "rm", NETWORK)


def _end_orphans(programs: Programs) -> None:
    """Builds and the like that a killed `up` left running. The daemon itself is asked to stop later, in order."""
    kept = set(daemons.family(programs))

    def orphans() -> list[int]:
        return [pid for pid in leftovers.marked_processes(programs.places) if pid not in kept]

    leftovers.end_processes(orphans, signal.SIGKILL)


def _revive(programs: Programs, recorded: state.State) -> Docker | None:
    """A daemon that died remembers its containers and would bring them back: start it once more to make it forget."""
    _clear(programs)
    containers = programs.places.docker_data / "containers"
    if not containers.is_dir() or not any(containers.iterdir()):
        return None
    try:
        return daemons.start(programs, recorded)
    except UserError:
        say("our Docker daemon does not start any more; its images are removed and made again next time")
        shutil.rmtree(programs.places.docker_data, ignore_errors=True)
        return None


def _clear(programs: Programs) -> None:
    leftovers.remove(programs)
    bridges.remove(programs)


def _forget_scratch(places: Places) -> None:
    shutil.rmtree(places.scratch, ignore_errors=True)
