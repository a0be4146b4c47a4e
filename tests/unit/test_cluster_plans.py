"""The pure parts of the cluster's tooling: layout, keys, sentences, and what is read out of other programs' text."""

from pathlib import Path

import pytest

from millrace.errors import UserError
from millrace_cluster import bases, bridges, fingerprints, layout, machine, nodes, state, tools, volumes
from millrace_cluster.docker import daemon_settings
from millrace_cluster.images import check_python, packages, requirements
from millrace_cluster.places import REPOSITORY, Places, places
from millrace_cluster.programs import Programs
from millrace_cluster.progress import duration

pytestmark = pytest.mark.unit

PYPROJECT = """
[project]
dependencies = ["pydantic>=2"]
[project.optional-dependencies]
jobs = ["pyspark==4.2.0"]
operator = ["kopf>=1"]
[tool.hatch.build.targets.wheel]
packages = ["platform/millrace"]
"""


def test_every_node_mounts_the_folder_of_the_shared_volumes() -> None:
    config = layout.kind_config(Path("/cache/volumes"))

    mounts = [node["extraMounts"] for node in config["nodes"]]  # type: ignore[attr-defined]
    assert mounts == [[{"hostPath": "/cache/volumes", "containerPath": layout.VOLUMES_IN_NODE}]] * 2


def test_volumes_are_made_when_missing_and_renewed_when_given_back() -> None:
    phases = {layout.volume_name(number): "Available" for number in range(layout.VOLUMES)}
    phases["shared-03"] = "Released"
    phases["shared-04"] = "Bound"
    del phases["shared-05"]

    assert volumes.to_make(phases) == ["shared-03", "shared-05"]
    assert len(volumes.to_make({})) == layout.VOLUMES


def test_a_fingerprint_follows_names_content_and_words(tmp_path: Path) -> None:
    def key(text: str = "a", name: str = "one", word: str = "w") -> str:
        folder = tmp_path / f"{text}-{name}" / "tree"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / "__pycache__").mkdir(exist_ok=True)
        (folder / "__pycache__" / "one.pyc").write_bytes(name.encode())
        return fingerprints.of_files([folder], word)

    assert key() == key()
    assert len({key(), key(text="b"), key(name="two"), key(word="x")}) == 4


def test_our_own_daemon_keeps_everything_below_the_cache_folder() -> None:
    settings = daemon_settings(Places(Path("/c")), wrap_runc=True)

    assert settings["data-root"] == "/c/docker"
    assert settings["hosts"] == ["unix:///c/cluster/docker/docker.sock"]
    assert (settings["bridge"], settings["iptables"], settings["ip-forward"]) == ("none", False, False)
    assert settings["default-runtime"] == "unraised"
    assert "default-runtime" not in daemon_settings(Places(Path("/c")), wrap_runc=False)


def test_the_clusters_of_two_cache_folders_share_no_name_in_the_kernel() -> None:
    one, other = Places(Path("/one")), Places(Path("/other"))

    assert one.bridge != other.bridge and one.cgroup != other.cgroup
    assert len(one.bridge) <= 15


def test_a_firewall_that_forwards_nothing_is_seen() -> None:
    assert bridges.drops("-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n")
    assert not bridges.drops("-P FORWARD ACCEPT\n")


def test_a_record_survives_and_nothing_is_recorded_at_first(tmp_path: Path) -> None:
    path = tmp_path / "cluster" / "state.json"
    assert state.load(path) is None

    written = state.save(path, state.State(own_docker=True, cluster="key", loaded={"a": "b"}))

    assert state.load(path) == written
    assert [file.name for file in path.parent.iterdir()] == ["state.json"]
    path.write_text('{"own_docker": true, "of another version": 1}')
    assert state.load(path) == state.State(own_docker=True)


@pytest.mark.parametrize(
    ("status", "present"), [("CapBnd:\t000001fffeffffff\n", False), ("CapBnd:\t000001ffffffffff\n", True), ("", False)]
)
def test_a_missing_capability_is_seen(status: str, present: bool) -> None:
    assert machine.has_capability(status, machine.SYS_RESOURCE) is present


@pytest.mark.parametrize(
    ("printed", "version"), [("go1.26.8", (1, 26)), ("go1.19", (1, 19)), ("devel +abc", (0, 0)), ("", (0, 0))]
)
def test_gos_version_is_read(printed: str, version: tuple[int, int]) -> None:
    assert machine.go_version(printed) == version


def test_kinds_own_image_needs_what_it_needs() -> None:
    fits = [nodes.kind_image_fits(cgroups, resource) for cgroups in (True, False) for resource in (True, False)]

    assert fits == [True, False, False, False]


def test_names_of_images_are_read_from_kinds_own_files() -> None:
    source = 'package defaults\n\nconst Image = "kindest/node:v1@sha256:aa"\n'

    assert tools.default_node_image(source) == "kindest/node:v1@sha256:aa"
    assert nodes.sandbox_image('[plugins]\n  sandbox_image = "example/pause:3"\n') == "example/pause:3"


def test_the_machines_own_mirror_serves_the_base_image() -> None:
    assert bases.mirror("bookworm-updates http://a/debian/\nbookworm http://b/debian/\n") == "http://b/debian/"
    assert bases.mirror("noble http://c/ubuntu/\n") is None


def test_an_image_installs_the_dependencies_and_its_extra_alone() -> None:
    assert requirements(PYPROJECT, "jobs") == ["pydantic>=2", "pyspark==4.2.0"]
    assert packages(PYPROJECT) == ["platform/millrace"]


def test_the_tooling_is_not_part_of_what_is_shipped() -> None:
    assert not [name for name in packages((REPOSITORY / "pyproject.toml").read_text()) if "cluster" in name]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.44, "0.4 s"), (12.4, "12 s"), (59.6, "1 min 0 s"), (331.0, "5 min 31 s")]
)
def test_times_are_written_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_each_thing_that_is_missing_has_its_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    programs = Programs(Places(tmp_path))

    with pytest.raises(UserError, match="There is no Go here"):
        machine.find_go(programs)
    with pytest.raises(UserError, match="no-such-program cannot be installed here without apt-get"):
        machine.install(programs, {"no-such-program": "no-such-package"})


def test_someone_who_is_not_root_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    with pytest.raises(UserError, match="start Docker, or run this as root"):
        machine.check_may_start_docker()


def test_the_wrong_python_is_named() -> None:
    with pytest.raises(UserError, match=r"run Python 3\.11, but this environment has 3\.13"):
        check_python((3, 13))


def test_a_cache_folder_too_deep_for_sockets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/" + "deep/" * 20)

    with pytest.raises(UserError, match="set XDG_CACHE_HOME to a shorter one"):
        places()


def test_a_program_that_fails_leaves_a_sentence_and_a_log(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"'sh -c echo.*' failed with exit code 3 with \"no luck\"; its log is .*sh\.log"
    ):
        Programs(Places(tmp_path)).run(["sh", "-c", "echo so far; echo no luck >&2; exit 3"])
