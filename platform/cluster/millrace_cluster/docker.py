"""The Docker daemon that carries the nodes: the one that answers, else one of our own below the cache folder."""

import json
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from millrace.errors import UserError
from millrace_cluster import leftovers, state
from millrace_cluster.machine import DOCKER_PACKAGES, check_may_start_docker, install, lacks_sys_resource
from millrace_cluster.places import SOURCES, Places
from millrace_cluster.programs import Programs
from millrace_cluster.progress import say, step
from millrace_cluster.state import State

READY_SECONDS = 120.0
STOP_SECONDS = 30.0
RUNC_WRAPPER = SOURCES / "node" / "runc-without-sys-resource"


@dataclass(frozen=True)
class Docker:
    """A daemon that answers, and how to talk to it."""

    programs: Programs
    own: bool

    def run(self, *arguments: str | Path, stdin: str | bytes | None = None) -> str:
        return self.programs.run(["docker", *arguments], stdin=stdin)

    def answers(self, *arguments: str | Path, within_seconds: float = 20.0) -> bool:
        return self.programs.answers(["docker", *arguments], within_seconds=within_seconds)

    def answers_in_time(self) -> bool:
        """Whether it answers at last: on a busy machine it may take long, and must not be thought dead."""
        deadline = time.monotonic() + READY_SECONDS
        while not self.answers("version"):
            if time.monotonic() > deadline or not is_running(self.programs):
                return False
            time.sleep(0.1)
        return True

    def has_image(self, name: str) -> bool:
        return self.answers("image", "inspect", name)

    def image_id(self, name: str) -> str:
        return self.run("image", "inspect", "--format", "{{.Id}}", name).strip()

    def build(self, folder: Path, tag: str, **arguments: str) -> None:
        """Build a folder's Dockerfile. On the host's network, because our own daemon has no other."""
        given = [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
        self.run("build", "--network", "host", "--tag", tag, *given, folder)


def connect(programs: Programs) -> Docker | None:
    """Our own daemon where it runs, else the one that Docker's own settings lead to, else None."""
    own = Docker(own_programs(programs), own=True)
    if is_running(programs) and own.answers_in_time():
        return own
    theirs = Docker(programs, own=False)
    return theirs if theirs.answers("version") else None


def own_programs(programs: Programs) -> Programs:
    # Debian's daemon has a builder of its own; newer clients leave it alone unless told to use it
    address = f"unix://{programs.places.docker_socket}"
    return programs.having(DOCKER_HOST=address, DOCKER_BUILDKIT="0", DOCKER_CONTEXT="")


def start(programs: Programs, recorded: State | None) -> Docker:
    """Start a daemon of our own. That it is ours is recorded first."""
    check_may_start_docker()
    install(programs, DOCKER_PACKAGES)
    places = programs.places
    if recorded is None or not recorded.own_docker:
        state.save(places.state, State(own_docker=True, made_network=True))
    with step("start a Docker daemon of our own"):
        _launch(programs)
    return Docker(own_programs(programs), own=True)


def daemon_settings(places: Places, wrap_runc: bool) -> dict[str, object]:
    """Everything below our folder, and no network but the one that the cluster makes."""
    settings: dict[str, object] = {
        "data-root": str(places.docker_data),
        "exec-root": str(places.docker_run / "exec"),
        "pidfile": str(places.docker_run / "dockerd.pid"),
        "hosts": [f"unix://{places.docker_socket}"],
        "bridge": "none",
        # The machine's firewall stays as it is, also for another daemon. Nodes reach each other over their bridge, and
        # this machine reaches them through a forwarding process; they do not reach the world, and need not.
        "iptables": False,
        "ip-forward": False,
        "ip-masq": False,
        "cgroup-parent": f"/{places.cgroup}",
        "oom-score-adjust": 0,
    }
    if wrap_runc:
        settings["runtimes"] = {"unraised": {"path": str(RUNC_WRAPPER)}}
        settings["default-runtime"] = "unraised"
    return settings


def _launch(programs: Programs) -> None:
    places = programs.places
    shutil.rmtree(places.docker_run, ignore_errors=True)  # a dead daemon's pid file would stop the next one
    places.docker_run.mkdir(parents=True)
    config = places.docker_run / "daemon.json"
    config.write_text(json.dumps(daemon_settings(places, lacks_sys_resource()), indent=1))
    places.logs.mkdir(parents=True, exist_ok=True)
    log = places.logs / "dockerd.log"
    environment = programs.environment()
    dockerd = shutil.which("dockerd", path=environment["PATH"])
    with log.open("wb") as out:
        daemon = subprocess.Popen(
            [str(dockerd), "--config-file", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment,
            start_new_session=True,  # it outlives us and our terminal; `down` stops it
        )
    if not Docker(own_programs(programs), own=True).answers_in_time():
        raise UserError(f"Our Docker daemon does not start; its log is {log}.")
    daemon.returncode = 0  # it is meant to run on: nobody waits for it


def stop(programs: Programs) -> None:
    """Ask our daemon to stop, and wait for it. What does not stop is left for `leftovers.remove`."""
    if not leftovers.end_processes(lambda: _daemon(programs), signal.SIGTERM, STOP_SECONDS):
        say("our Docker daemon does not stop when asked; it is killed")


def family(programs: Programs) -> list[int]:
    """Our daemon and all that it started: its containerd, the shims, the port forwarders."""
    exec_root = str(programs.places.docker_run).encode()
    return [pid for pid in leftovers.marked_processes(programs.places) if exec_root in leftovers.command_line(pid)]


def is_running(programs: Programs) -> bool:
    """Whether the process of our daemon is alive, whether or not it answers."""
    return bool(_daemon(programs))


def _daemon(programs: Programs) -> list[int]:
    config = str(programs.places.docker_run / "daemon.json").encode()
    return [pid for pid in family(programs) if config in leftovers.command_line(pid).split(b"\0")]
