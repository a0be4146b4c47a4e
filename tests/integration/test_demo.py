"""The demo: its figures add up, and nothing of it stays behind, however it ends."""

import re
import signal
from pathlib import Path

import pytest

from tests.integration.local.commands import alive, is_java, running, wait_for

pytestmark = pytest.mark.integration

EXAMPLE = "pageviews-per-minute"


def test_what_the_shop_sent_is_what_the_jobs_say_they_read(tmp_path: Path) -> None:
    # FORCE_COLOR makes rich draw the live table into the file, as on a terminal.
    screen = {"TTY_INTERACTIVE": "1", "FORCE_COLOR": "1", "COLUMNS": "130", "TTY_COMPATIBLE": "1"}
    with running(["demo", EXAMPLE, "--for", "10s"], tmp_path, **screen) as command:
        assert command.wait() == 0, command.output()
    told = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", command.output())
    assert "Shop open for" in told
    assert "Shop closed, the jobs read what is left" in told
    (agreement,) = re.findall(r"shop/pageviews-per-minute.* equal", told)
    sent, read, malformed, found, ahead, future = re.findall(r"[\d,]+", agreement)
    assert (sent, malformed, ahead) == (read, found, future)
    assert int(sent.replace(",", "")) > 100_000, "the history and ten seconds"
    assert "Newest results in topic pageviews-per-minute" in told
    assert [one.name for one in tmp_path.iterdir()] == ["output.txt"], "its folder is gone"


def test_ctrl_c_closes_the_shop_and_the_figures_still_add_up(tmp_path: Path) -> None:
    with running(["demo", EXAMPLE], tmp_path) as command:
        command.wait_for_text(f"shop/{EXAMPLE} running")
        family = command.descendants()
        command.send(signal.SIGINT)
        assert command.wait() == 0, command.output()
        assert alive(family) == set()
    assert re.search(rf"shop/{EXAMPLE} .* equal", command.output())


def test_kill_9_of_the_demo_leaves_no_process_behind(tmp_path: Path) -> None:
    with running(["demo", EXAMPLE], tmp_path) as command:
        wait_for(lambda: sum(map(is_java, command.descendants())) == 2, "the broker and the driver to be there")
        family = command.descendants()
        command.kill()
        wait_for(lambda: alive(family) == set(), "every process of the demo to be gone", seconds=30)
