"""The Debian image that all of ours stand on: pulled where that works, else made from Debian's own packages."""

import shutil

from millrace_cluster.docker import Docker
from millrace_cluster.machine import BASE_PACKAGES, check_may_start_docker, install
from millrace_cluster.programs import Programs
from millrace_cluster.progress import say, step

SUITE = "bookworm"
USUAL = f"debian:{SUITE}-slim"
MADE = f"millrace/debian:{SUITE}"
PULL_SECONDS = 300.0
PAPERS = ("usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale")
UNWANTED = (*PAPERS, "var/lib/apt/lists", "var/cache/apt")
DPKG_SETTINGS = "".join(f"path-exclude=/{folder}/*\n" for folder in PAPERS)


def base_image(docker: Docker) -> str:
    """The name to give to Dockerfiles as BASE."""
    for name in (MADE, USUAL):
        if docker.has_image(name):
            return name
    if docker.answers("pull", "--quiet", USUAL, within_seconds=PULL_SECONDS):
        return USUAL
    say(f"{USUAL} cannot be pulled here")
    check_may_start_docker()  # debootstrap needs root as well
    install(docker.programs, BASE_PACKAGES)
    with step("make a Debian base image from packages (once, about 1 minute)"):
        _bootstrap(docker)
    return MADE


def mirror(targets: str) -> str | None:
    """Where this machine's own apt gets the suite from, so that a mirror set up here serves the images too."""
    for line in targets.splitlines():
        codename, _, address = line.partition(" ")
        if codename == SUITE and address:
            return address.strip()
    return None


def _bootstrap(docker: Docker) -> None:
    programs = docker.programs
    root = programs.places.scratch / "debian"
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    address = mirror(_apt_targets(programs))
    programs.run(["debootstrap", "--variant=minbase", SUITE, root, *([address] if address else [])])
    for folder in UNWANTED:
        shutil.rmtree(root / folder, ignore_errors=True)
        (root / folder).mkdir(parents=True)
    (root / "etc/dpkg/dpkg.cfg.d/without-documentation").write_text(DPKG_SETTINGS)
    archive = programs.places.scratch / "debian.tar"
    programs.run(["tar", "--numeric-owner", "-C", root, "-cf", archive, "."])
    docker.run("import", archive, MADE)
    shutil.rmtree(root)
    archive.unlink()


def _apt_targets(programs: Programs) -> str:
    question = ["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"]
    return programs.run(question) if shutil.which("apt-get") else ""
