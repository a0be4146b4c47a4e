"""The bridge between the nodes, under our own daemon: its name is known, so it can be removed after any crash."""

from pathlib import Path

from millrace_cluster.docker import Docker
from millrace_cluster.places import Places
from millrace_cluster.programs import Programs


def make(docker: Docker, network: str) -> None:
    """kind's network on our bridge. Where the machine forwards nothing, frames between our nodes are let through."""
    places = docker.programs.places
    if not docker.answers("network", "inspect", network):
        bridge = f"com.docker.network.bridge.name={places.bridge}"
        docker.run("network", "create", "--subnet", places.node_range, "--opt", bridge, network)
    if drops(docker.programs.run(["iptables", "--wait", "-S", "FORWARD"])) and not _change(docker.programs, "-C"):
        docker.programs.run(["iptables", "--wait", "-I", *_rule(places)])


def remove(programs: Programs) -> None:
    """The bridge, when the daemon could not do it, and our rule in the firewall."""
    if Path("/sys/class/net", programs.places.bridge).exists():
        programs.answers(["ip", "link", "delete", programs.places.bridge])
    while _change(programs, "-D"):
        pass


def drops(listing: str) -> bool:
    """Whether packets that no rule knows are dropped, by what `iptables -S FORWARD` printed."""
    return not listing.startswith("-P FORWARD ACCEPT")


def _change(programs: Programs, how: str) -> bool:
    return programs.answers(["iptables", "--wait", how, *_rule(programs.places)])


def _rule(places: Places) -> list[str]:
    return ["FORWARD", "-i", places.bridge, "-o", places.bridge, "-j", "ACCEPT"]
