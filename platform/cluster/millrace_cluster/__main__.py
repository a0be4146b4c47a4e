"""The command line: `python -m millrace_cluster up|down|status|images|load`."""

import argparse
import sys
import time

from millrace.errors import UserError
from millrace_cluster import cluster, images
from millrace_cluster.places import places
from millrace_cluster.programs import Programs
from millrace_cluster.progress import duration, say


def main(arguments: list[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    try:
        programs = Programs(places())
        with cluster.alone(programs.places):
            _run(chosen, programs)
    except UserError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cluster: interrupted; 'make cluster' goes on, 'make cluster-down' clears up", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="millrace_cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="bring the cluster up; nothing happens where it is up")
    up.add_argument("--without-images", action="store_true", help="do not build and load our own images")
    commands.add_parser("down", help="take the cluster down, with all that was made for it")
    commands.add_parser("status", help="show the nodes")
    commands.add_parser("images", help="build our images and load them into the nodes")
    load = commands.add_parser("load", help="load an image of the cluster's Docker daemon into the nodes")
    load.add_argument("image", nargs="+")
    return parser


def _run(chosen: argparse.Namespace, programs: Programs) -> None:
    if chosen.command == "up":
        started = time.monotonic()
        cluster.up(programs)
        if not chosen.without_images:
            _images(programs)
        say(f"ready after {duration(time.monotonic() - started)}; its kubeconfig is {programs.places.kubeconfig}")
    elif chosen.command == "down":
        cluster.down(programs)
        say("gone")
    elif chosen.command == "status":
        print(cluster.status(programs), end="")
    elif chosen.command == "images":
        _images(programs)
    else:
        cluster.load(cluster.require(programs), chosen.image)


def _images(programs: Programs) -> None:
    docker = cluster.require(programs)
    cluster.build_images(docker)
    cluster.load(docker, [image.name for image in images.IMAGES])


if __name__ == "__main__":
    sys.exit(main())
