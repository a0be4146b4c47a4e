"""A Secret reads the same from a mounted folder and from an environment variable; names are derived in one place."""

from pathlib import Path

import pytest

from millrace import naming
from millrace.errors import UserError
from millrace.resources.secrets import read_secret

pytestmark = pytest.mark.unit


def test_an_environment_variable_stands_for_a_secret() -> None:
    environment = {"MILLRACE_SECRET_SHOP_DB_MAIN": "postgresql://u:p@db:5432/shop"}
    assert read_secret("shop-db.main", environment) == {"url": "postgresql://u:p@db:5432/shop"}


def test_a_mounted_secret_is_a_folder_with_one_file_for_each_key(tmp_path: Path) -> None:
    folder = tmp_path / "shop-db"
    (folder / "..data").mkdir(parents=True)
    (folder / ".hidden").write_text("no")
    (folder / "host").write_text("db\n")
    (folder / "password").write_text(" p ")
    assert read_secret("shop-db", {"MILLRACE_SECRETS": str(tmp_path)}) == {"host": "db", "password": " p "}


def test_a_secret_that_is_nowhere_is_a_sentence_that_says_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"set MILLRACE_SECRET_SHOP_DB to its address, or make the folder .*shop-db"):
        read_secret("shop-db", {"MILLRACE_SECRETS": str(tmp_path)})


def test_names_in_kafka_and_on_the_cluster() -> None:
    assert naming.consumer_group("shop", "views") == "millrace.shop.views"
    assert naming.transactional_id("shop", "views", "out", 3) == "millrace.shop.views.out.3"
    assert naming.driver_pod("views") == "views-driver-0"


@pytest.mark.parametrize(
    "derive", [naming.driver_pod, naming.headless_service, naming.config_map, naming.checkpoint_claim]
)
def test_the_longest_job_name_still_gives_names_that_kubernetes_takes(derive: object) -> None:
    longest = "j" * 45
    assert len(derive(longest)) <= 63  # type: ignore[operator]
    # the revision label of the driver's pods: the StatefulSet's name, a dash and up to ten characters
    assert len(naming.driver(longest)) + 11 <= 63
