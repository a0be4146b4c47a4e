"""What is found again after a crash: mounts and processes of ours, and no others."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from millrace_cluster.leftovers import end_processes, marked_processes, mounts_below
from millrace_cluster.places import Places
from millrace_cluster.programs import Programs

pytestmark = pytest.mark.unit

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
90 22 0:50 / /home/me/.cache/millrace/docker/overlay2/ab/merged rw - overlay overlay rw
91 90 0:51 / /home/me/.cache/millrace/docker/overlay2/ab/merged/proc rw - proc proc rw
92 22 0:52 / /home/me/.cache/millrace-other/docker rw - tmpfs tmpfs rw
93 22 0:53 / /home/me/.cache/millrace/docker/with\\040space rw - tmpfs tmpfs rw
"""
FOLDER = Path("/home/me/.cache/millrace/docker")


def test_mounts_below_our_folder_are_found_last_one_first() -> None:
    inside = [str(Path(point).relative_to(FOLDER)) for point in mounts_below(MOUNTS, FOLDER)]

    assert inside == ["with space", "overlay2/ab/merged/proc", "overlay2/ab/merged"]


def test_a_marked_process_and_its_children_are_found_and_ended(tmp_path: Path) -> None:
    places = Places(tmp_path)
    code = "import subprocess, sys; c = subprocess.Popen(['sleep', '60']); print(c.pid, flush=True); c.wait()"
    environment = Programs(places).environment()
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())

        assert sorted(marked_processes(places)) == sorted([parent.pid, child])
        assert marked_processes(Places(tmp_path / "other")) == []
        assert end_processes(lambda: marked_processes(places), signal.SIGKILL, seconds=10)

    assert not os.path.exists(f"/proc/{parent.pid}")


def test_a_process_that_does_not_end_in_time_is_reported() -> None:
    assert not end_processes(lambda: [2**22 + 1], signal.SIGTERM, seconds=0.1)
