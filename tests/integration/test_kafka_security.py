"""Jobs against a broker that asks for TLS and a login: as exact as without, through a change of the password too."""

import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from millrace import naming
from millrace.cli import main as millrace
from millrace.kafka.clients import consumer
from millrace.kafka.embedded import EmbeddedKafka
from millrace.kafka.security import read_security
from millrace.resources import StreamJob
from millrace.resources.reading import parse_object
from millrace_lag.observer import Observer, Settings
from millrace_lag.snapshots import as_json
from millrace_lag.subjects import subject
from millrace_operator.edge import secrets
from tests.integration.matrix.drivers import Driver
from tests.integration.matrix.outcomes import assert_exact
from tests.integration.protected import (
    MountedSecret,
    make_authority,
    make_identity,
    remove_user,
    set_password,
)
from tests.integration.test_matrix import FEW, prepared
from tests.integration.test_operator_topics import World, run
from tests.integration.test_runtime import Stage, at

pytestmark = pytest.mark.integration

SECONDS = 180.0
PLANTED = "planted-4d7a91"
"""Every password of these tests holds it, so that one search finds any of them."""


@dataclass(frozen=True)
class Protected:
    """`bootstrap` asks for TLS and a login; `inside` is for the tests themselves."""

    bootstrap: str
    inside: str
    authority: str

    def secret(self, user: str, password: str) -> dict[str, str]:
        return {"username": user, "password": password, "ca.crt": self.authority}


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Protected]:
    folder = tmp_path_factory.mktemp("protected")
    authority = make_authority(folder / "pki")
    with EmbeddedKafka(folder / "broker", identity=make_identity(folder / "pki")) as kafka:
        yield Protected(kafka.protected_bootstrap, kafka.bootstrap, authority.read_text())


def wait_for(condition: Callable[[], bool], what: str, driver: Driver) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited {SECONDS} s for {what}: {driver.status()}\n{driver.last_words()}"
        time.sleep(0.2)


def read(driver: Driver) -> int:
    return int(driver.status().get("sources", {}).get("views", {}).get("read", 0))


def outside(driver: Driver) -> dict[str, str]:
    """All that somebody can see of a running job without opening its Secret."""
    seen = {}
    for page in ("metrics", "status", "healthz"):
        with urllib.request.urlopen(f"http://127.0.0.1:{driver.status()['metrics_port']}/{page}", timeout=10) as answer:
            seen[page] = answer.read().decode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if process.name != str(os.getpid()):
            seen[f"process {process.name}"] = words.decode(errors="replace")
    return seen


def left_behind(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file() and "secret" not in file.parts)
    return {str(file): file.read_bytes().decode(errors="replace") for file in files}


def assert_unseen(*places: dict[str, str]) -> None:
    assert [name for place in places for name, text in place.items() if PLANTED in text] == []


def test_the_same_job_is_as_exact_with_tls_and_a_login(protected: Protected, tmp_path: Path) -> None:
    set_password(protected.inside, "matrix", f"{PLANTED}-1")
    secret = MountedSecret(tmp_path / "secret", protected.secret("matrix", f"{PLANTED}-1"))
    case = prepared(protected.inside, "tumbling", "aside", max_records_per_batch=FEW)
    driver = Driver(case.resource, protected.bootstrap, tmp_path, arguments=("--kafka-auth", str(secret.folder)))
    assert_exact(protected.inside, case, driver.checkpoint, driver.run_to_the_end())
    assert_unseen(left_behind(tmp_path))


def test_a_changed_password_and_a_changed_user_lose_no_event(protected: Protected, tmp_path: Path) -> None:
    set_password(protected.inside, "first", f"{PLANTED}-old")
    secret = MountedSecret(tmp_path / "secret", protected.secret("first", f"{PLANTED}-old"))
    stage = Stage(protected.inside)
    job = stage.job([], source={"maxRecordsPerBatch": 10})
    driver = Driver(job, protected.bootstrap, tmp_path, arguments=("--kafka-auth", str(secret.folder)))
    child = driver.start(until_caught_up=False)

    def write(first: int, count: int) -> None:
        stage.write([{"user": "a", "n": n, "at": at(n)} for n in range(first, first + count)])

    try:
        write(0, 40)
        wait_for(lambda: read(driver) == 40, "the first events", driver)
        # The password changes before the Secret does: the job is refused, says why, and waits.
        set_password(protected.inside, "first", f"{PLANTED}-new")
        write(40, 40)
        wait_for(lambda: driver.status().get("cause") == "BrokerRefused", "the job to say that it is refused", driver)
        assert "the broker refused the login of 'first' by SCRAM-SHA-512" in driver.status()["message"]
        secret.put(protected.secret("first", f"{PLANTED}-new"))
        wait_for(lambda: read(driver) == 80, "what came meanwhile", driver)
        assert_unseen(outside(driver))
        # Another user, while the old one still holds: nothing fails.
        failures = driver.log.read_text().count('"waits"')
        set_password(protected.inside, "second", f"{PLANTED}-other")
        secret.put(protected.secret("second", f"{PLANTED}-other"))
        write(80, 20)
        wait_for(lambda: driver.log.read_text().count("credentials-taken") == 2, "the second change", driver)
        remove_user(protected.inside, "first")
        write(100, 20)
        wait_for(lambda: read(driver) == 120, "what came after the second change", driver)
        assert driver.log.read_text().count('"waits"') == failures
        # A Secret that cannot be used holds the job up until it is put right.
        secret.put({"username": "second"})
        write(120, 10)
        told = "username and password must both be there"
        wait_for(lambda: told in (driver.status().get("message") or ""), "the job to name the mistake", driver)
        secret.put(protected.secret("second", f"{PLANTED}-other"))
        wait_for(lambda: read(driver) == 130, "what came with the bad Secret", driver)
        assert child.stop() == 0
    finally:
        child.stop()
    assert sorted(row["n"] for row in stage.out()) == list(range(130)), "each event is there, and each once"
    assert_unseen(left_behind(tmp_path))


def test_topics_are_looked_after_with_the_secret_that_they_name(
    protected: Protected, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(secrets, "FRESH_SECONDS", 0.0)
    set_password(protected.inside, "topics", f"{PLANTED}-1")
    cluster = {"bootstrapServers": protected.bootstrap, "authSecret": {"name": "kafka-client"}}

    async def main(world: World) -> None:
        world.declare("guarded", partitions=2, cluster=cluster)
        await world.look()
        assert world.ready("guarded") == ("False", "SecretMissing")
        world.put_secret("kafka-client", protected.secret("topics", f"{PLANTED}-wrong"))
        await world.look()
        assert world.ready("guarded") == ("False", "BrokerRefused")
        assert "the broker refused the login of 'topics' by SCRAM-SHA-512" in world.condition("guarded")["message"]
        world.put_secret("kafka-client", protected.secret("topics", f"{PLANTED}-1"))
        await world.look()
        assert (world.ready("guarded"), world.partitions("guarded")) == (("True", "AsDeclared"), 2)
        set_password(protected.inside, "topics", f"{PLANTED}-2")
        world.put_secret("kafka-client", protected.secret("topics", f"{PLANTED}-2"))
        world.declare("guarded", partitions=3, cluster=cluster)
        await world.look()
        assert (world.ready("guarded"), world.partitions("guarded")) == (("True", "AsDeclared"), 3)
        told = {place: json.dumps(body) for place, body in world.api.objects.items() if body["kind"] != "Secret"}
        assert_unseen(told, {"log": caplog.text})

    with caplog.at_level("DEBUG"):
        run(protected.inside, main)


def test_lag_is_read_with_the_secret_of_the_job_and_goes_on_when_it_changes(
    protected: Protected, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    set_password(protected.inside, "observer", f"{PLANTED}-1")
    secret = MountedSecret(tmp_path / "secret", protected.secret("observer", f"{PLANTED}-1"))
    stage = Stage(protected.inside)
    resource = stage.job([], kafka={"bootstrapServers": protected.bootstrap, "authSecret": {"name": "kafka-client"}})
    job = parse_object(resource)
    assert isinstance(job, StreamJob)
    stage.write([{"user": "a", "n": n} for n in range(5)])
    commit(protected.inside, naming.consumer_group("default", stage.name), TopicPartition(f"{stage.name}-in", 0, 2))
    settings = Settings(interval_seconds=0.5, deadline_seconds=5.0)
    with (
        caplog.at_level("DEBUG"),
        Observer(lambda: (subject(job, ""),), settings, lambda _: read_security(secret.folder)) as observer,
    ):
        assert observer.wait(lambda views: [one.records for one in views[0].jobs.values()] == [3], SECONDS)
        assert f'cluster="{protected.bootstrap} as default/kafka-client"'.encode() in observer.metrics()
        set_password(protected.inside, "observer", f"{PLANTED}-2")
        assert observer.wait(lambda views: "refused the login" in views[0].health.error, SECONDS)
        (trouble,) = observer.troubles()
        assert "the broker refused the login of 'observer' by SCRAM-SHA-512" in trouble
        secret.put(protected.secret("observer", f"{PLANTED}-2"))
        stage.write([{"user": "a", "n": 5}])
        assert observer.wait(lambda views: [one.records for one in views[0].jobs.values()] == [4], SECONDS)
        seen = {"metrics": observer.metrics().decode(), "lag": json.dumps(as_json(observer.views()))}
        assert_unseen(seen, {"log": caplog.text, "trouble": trouble})
    words = ["lag", stage.name, "--json", "--bootstrap", protected.bootstrap, "--kafka-auth", str(secret.folder)]
    assert millrace(words) == 0
    assert [one["lagRecords"] for one in json.loads(capsys.readouterr().out)["jobs"]] == [4]


def commit(bootstrap: str, group: str, place: TopicPartition) -> None:
    client = consumer(bootstrap, group, **{"enable.auto.commit": False})
    try:
        client.commit(offsets=[place], asynchronous=False)
    finally:
        client.close()
