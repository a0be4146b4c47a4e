"""Builds our images from platform/images/ and brings them into the nodes. Rebuilds only what changed."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from millrace.errors import UserError
from millrace.local.java import find_jars
from millrace_cluster import deltas, fingerprints
from millrace_cluster.bases import base_image
from millrace_cluster.docker import Docker
from millrace_cluster.places import NAME, REPOSITORY
from millrace_cluster.programs import Programs
from millrace_cluster.progress import step

PYTHON = (3, 11)  # Debian bookworm's, which the images run
TAG = "dev"


@dataclass(frozen=True)
class Image:
    """One of our images: a folder with a Dockerfile, and the extra of our distribution that it installs, if any."""

    folder: str
    extra: str | None = None
    jars: str | None = None

    @property
    def repository(self) -> str:
        return f"{NAME}/{self.folder}"

    @property
    def name(self) -> str:
        return f"{self.repository}:{TAG}"


JOB = Image("job", "jobs", jars="spark")
OPERATOR = Image("operator", "operator")
KAFKA = Image("kafka", jars="broker")
IMAGES = (JOB, OPERATOR, KAFKA)


def packages(pyproject: str) -> list[str]:
    """The packages of our distribution, as the build is told."""
    listed: list[str] = tomllib.loads(pyproject)["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return listed


def requirements(pyproject: str, extra: str) -> list[str]:
    """What an image installs beside our own code."""
    project = tomllib.loads(pyproject)["project"]
    return [*project["dependencies"], *project["optional-dependencies"][extra]]


def build(docker: Docker, image: Image) -> str:
    """Have the image under its name; returns Docker's id of it."""
    base = base_image(docker)
    keyed = f"{image.repository}:{_key(image, base)}"
    if not docker.has_image(keyed):
        wheels = _wheels(docker.programs, image, image.extra) if image.extra else None
        with step(f"build the image {image.name}"):
            _build(docker, image, wheels, keyed, base)
        _forget_older(docker, image, keyed)
    docker.run("tag", keyed, image.name)
    return docker.image_id(image.name)


def _key(image: Image, base: str) -> str:
    sources = [REPOSITORY / "platform/images" / image.folder]
    if image.extra:
        sources += [REPOSITORY / "pyproject.toml", *_package_folders()]
    jars = sorted(path.name for path in find_jars(image.jars).iterdir()) if image.jars else []
    return fingerprints.of_files(sources, base, *jars)


def _package_folders() -> list[Path]:
    folders = [REPOSITORY / name for name in packages((REPOSITORY / "pyproject.toml").read_text())]
    return [folder for folder in folders if folder.is_dir()]


def _build(docker: Docker, image: Image, wheels: Path | None, tag: str, base: str) -> None:
    folder = docker.programs.places.scratch / f"image-{image.folder}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(REPOSITORY / "platform/images" / image.folder, folder)
    if wheels is not None:
        shutil.copytree(wheels, folder / "wheels", copy_function=os.link)  # half a gigabyte need not be copied
        pip(docker.programs, "wheel", "--no-deps", "--wheel-dir", folder / "millrace", REPOSITORY)
    if image.jars:
        shutil.copytree(find_jars(image.jars), folder / "jars")
    docker.build(folder, tag, BASE=base)
    shutil.rmtree(folder)


def _forget_older(docker: Docker, image: Image, kept: str) -> None:
    """One version of each image is enough; stages of builds may serve again for a day."""
    listed = docker.run("image", "ls", "--format", "{{.Repository}}:{{.Tag}}", image.repository).split()
    older = [name for name in listed if name not in (kept, image.name)]
    if older:
        docker.answers("image", "rm", *older)
    if docker.own:
        docker.answers("image", "prune", "--force", "--filter", "until=24h")


def _wheels(programs: Programs, image: Image, extra: str) -> Path:
    """The dependencies as wheels, fetched once per set of requirements."""
    wanted = requirements((REPOSITORY / "pyproject.toml").read_text(), extra)
    folder = programs.places.wheels / f"{extra}-{fingerprints.of_files([], *wanted)}"
    if not folder.exists():
        check_python(sys.version_info[:2])
        with step(f"collect the wheels of {image.name}"):
            fresh = programs.places.scratch / f"wheels-{extra}"
            shutil.rmtree(fresh, ignore_errors=True)
            pip(programs, "wheel", "--wheel-dir", fresh, *wanted)
            for older in programs.places.wheels.glob(f"{extra}-*"):
                shutil.rmtree(older)
            folder.parent.mkdir(parents=True, exist_ok=True)
            fresh.rename(folder)
    return folder


def check_python(version: tuple[int, int]) -> None:
    """Wheels are collected by this Python, and must fit the one in the images."""
    if version != PYTHON:
        raise UserError(
            f"The images run Python {PYTHON[0]}.{PYTHON[1]}, but this environment has {version[0]}.{version[1]}:"
            f" remove .venv and run 'make setup PYTHON=python{PYTHON[0]}.{PYTHON[1]}'."
        )


def pip(programs: Programs, *arguments: str | Path) -> None:
    programs.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments])


def delta(docker: Docker, name: str, present: Sequence[str]) -> Path | None:
    """The image without the layers that the nodes have; None when that would save little."""
    target = docker.programs.places.scratch / "delta.tar"
    target.parent.mkdir(parents=True, exist_ok=True)
    environment = docker.programs.environment()
    with subprocess.Popen(["docker", "save", name], stdout=subprocess.PIPE, env=environment) as saving:
        assert saving.stdout is not None  # noqa: S101  it is a pipe
        small = deltas.write(saving.stdout, name, present, target)
        saving.stdout.read()  # what tar leaves unread behind its end, so that docker ends well
    return target if small and saving.returncode == 0 else None


def layers(docker: Docker, name: str) -> list[str]:
    found: list[str] = json.loads(docker.run("image", "inspect", "--format", "{{json .RootFS.Layers}}", name))
    return found


def archive(docker: Docker, name: str) -> Path:
    """An image as a file, kept until the image changes."""
    folder = docker.programs.places.archives
    short = docker.image_id(name).removeprefix("sha256:")[:12]
    stem = name.replace("/", "_").replace(":", "_")
    file = folder / f"{stem}.{short}.tar"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for older in folder.glob(f"{stem}.*"):
            older.unlink()
        fresh = file.with_suffix(".fresh")
        docker.run("save", "--output", fresh, name)
        fresh.rename(file)
    return file
