"""The state folder: one run at a time, one cluster for life."""

from pathlib import Path

import pytest

from millrace.errors import UserError
from millrace.local.state import StateFolder

pytestmark = pytest.mark.unit


def test_a_second_run_in_the_same_folder_is_refused_and_a_later_one_is_not(tmp_path: Path) -> None:
    with StateFolder(tmp_path / "state"), pytest.raises(UserError, match=r"Another run is using the folder .*--state"):
        StateFolder(tmp_path / "state").__enter__()
    with StateFolder(tmp_path / "state"):
        pass


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot be used for state .*--state"):
        StateFolder(tmp_path / "file" / "state").__enter__()


def test_the_state_of_one_cluster_is_not_used_with_another(tmp_path: Path) -> None:
    with StateFolder(tmp_path) as state:
        state.belongs_to("first")
        state.belongs_to("first")
        with pytest.raises(UserError, match=r"belongs to another Kafka cluster .*--state"):
            state.belongs_to("second")


def test_the_checkpoint_lies_where_it_is_promised_and_survives_the_start_of_a_run(tmp_path: Path) -> None:
    with StateFolder(tmp_path) as state:
        paths = state.job("shop", "visits")
        assert paths.checkpoint == tmp_path / "jobs" / "shop.visits"
        paths.checkpoint.mkdir(parents=True)
        paths.clear()
        paths.status.write_text("{}")
        paths.clear()
        assert not paths.status.exists()
        assert paths.checkpoint.exists()
