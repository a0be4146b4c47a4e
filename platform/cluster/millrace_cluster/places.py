"""Where everything of the cluster lies: below one cache folder, so that it can be found again and removed."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from millrace.errors import UserError

NAME = "millrace"
SOURCES = Path(__file__).resolve().parents[1]
REPOSITORY = SOURCES.parents[1]
LONGEST_SOCKET_FOLDER = 60  # the kernel allows 107 characters, and dockerd's deepest socket is 40 below this folder


@dataclass(frozen=True)
class Places:
    """Every path that the cluster's tooling reads or writes."""

    cache: Path

    @property
    def short(self) -> str:
        """Tells the clusters of two cache folders apart where their names meet: in the kernel."""
        return hashlib.sha256(str(self.cache).encode()).hexdigest()[:6]

    @property
    def cgroup(self) -> str:
        return f"{NAME}-{self.short}"

    @property
    def bridge(self) -> str:
        return f"{NAME}-{self.short}"  # 15 characters, which is as long as the kernel takes

    @property
    def node_range(self) -> str:
        """Addresses of the nodes: out of a range for carriers, so that they clash with no network that people use."""
        return f"100.65.{int(self.short, 16) % 256}.0/24"

    @property
    def bin(self) -> Path:
        """Programs that Go built for us: kind, helm, and kubectl where the node program brings it."""
        return self.cache / "bin"

    @property
    def node_programs(self) -> Path:
        return self.cache / "node"

    @property
    def wheels(self) -> Path:
        return self.cache / "wheels"

    @property
    def archives(self) -> Path:
        """Our images as files, ready to be loaded into a node."""
        return self.cache / "images"

    @property
    def docker_data(self) -> Path:
        """Layers and images of our own Docker daemon. Kept between clusters: it is what makes the second one quick."""
        return self.cache / "docker"

    @property
    def live(self) -> Path:
        """What belongs to the running cluster, and goes with it."""
        return self.cache / "cluster"

    @property
    def docker_run(self) -> Path:
        return self.live / "docker"

    @property
    def docker_socket(self) -> Path:
        return self.docker_run / "docker.sock"

    @property
    def scratch(self) -> Path:
        """Half-built things. Whatever lies here when a command starts is from one that was killed."""
        return self.live / "scratch"

    @property
    def volumes(self) -> Path:
        """The folder that every node sees, for volumes that many nodes write."""
        return self.live / "volumes"

    @property
    def kubeconfig(self) -> Path:
        return self.live / "kubeconfig"

    @property
    def state(self) -> Path:
        return self.live / "state.json"

    @property
    def logs(self) -> Path:
        return self.cache / "logs"

    @property
    def lock(self) -> Path:
        return self.cache / "cluster.lock"


def places() -> Places:
    """The places for this user: below XDG_CACHE_HOME, or ~/.cache."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
    found = Places(base / "millrace")
    if len(str(found.docker_run)) > LONGEST_SOCKET_FOLDER:
        raise UserError(f"The path {base} is too long for Docker's sockets: set XDG_CACHE_HOME to a shorter one.")
    return found
