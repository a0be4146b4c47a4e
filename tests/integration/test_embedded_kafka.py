"""The embedded broker: it works, says what is wrong in one sentence, and never outlives whoever started it."""

import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from millrace.errors import UserError
from millrace.kafka.clients import admin, consumer, producer
from millrace.kafka.embedded import EmbeddedKafka
from millrace.local.processes import Child

pytestmark = pytest.mark.integration


def make_topic(bootstrap: str, name: str) -> None:
    client = admin(bootstrap)
    for future in client.create_topics([NewTopic(name, 1, 1)]).values():
        future.result(timeout=30)


def processes_of(marker: str) -> list[int]:
    """Living processes with the marker in their command line. Zombies have none."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marker in line and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.05)


def test_what_is_produced_can_be_read(broker: str) -> None:
    topic = f"round-trip-{uuid.uuid4().hex}"
    make_topic(broker, topic)
    writer = producer(broker)
    writer.produce(topic, key=b"k", value=b"v")
    assert writer.flush(30) == 0
    reader = consumer(broker, topic, **{"auto.offset.reset": "earliest"})
    reader.subscribe([topic])
    message = reader.poll(30)
    reader.close()
    assert message is not None
    assert (message.key(), message.value()) == (b"k", b"v")


def test_a_misspelt_topic_is_not_made_in_silence(broker: str) -> None:
    client = admin(broker)
    client.list_topics("no-such-topic", timeout=30)
    assert "no-such-topic" not in client.list_topics(timeout=30).topics


def test_topics_are_still_there_after_a_restart_and_no_process_is(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path) as kafka:
        make_topic(kafka.bootstrap, "kept")
    assert processes_of(str(tmp_path)) == []
    with EmbeddedKafka(tmp_path) as kafka:
        assert "kept" in admin(kafka.bootstrap).list_topics(timeout=30).topics
    assert processes_of(str(tmp_path)) == []


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UserError, match=rf"^Port {port} is taken by another process: .*\.$"):
            EmbeddedKafka(tmp_path, port=port).start()


def test_a_second_broker_on_the_same_folder_is_one_sentence(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path), pytest.raises(UserError, match=r"^Another broker is using the folder .*\.$"):
        EmbeddedKafka(tmp_path).start()


def test_missing_java_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"^There is no java on the path: install Java 17 .*\.$"):
        EmbeddedKafka(tmp_path).start()


def test_old_java_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.22\" 2024-01-16' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UserError, match=r"is Java 11, which is too old: install Java 17 .*\.$"):
        EmbeddedKafka(tmp_path).start()


def test_missing_jars_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_JARS", str(tmp_path))
    with pytest.raises(UserError, match=r"^There are no jars in .*broker: run 'make setup'.*\.$"):
        EmbeddedKafka(tmp_path).start()


def start_owner(folder: Path, after_start: str) -> subprocess.Popen[str]:
    program = f"""
        import sys, threading, time
        from millrace.kafka.embedded import EmbeddedKafka
        kafka = EmbeddedKafka(sys.argv[1])
        {after_start}
        print("ready", flush=True)
        time.sleep(600)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(folder)]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "ready\n"
    owner.stdout.close()
    return owner


def test_the_broker_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    owner = start_owner(tmp_path, "kafka.start()")
    assert any(pid != owner.pid for pid in processes_of(str(tmp_path)))
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    wait_for(lambda: processes_of(str(tmp_path)) == [], "the broker of a killed parent to be gone")


def test_the_broker_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    starter = "starter = threading.Thread(target=kafka.start); starter.start(); starter.join()"
    owner = start_owner(tmp_path, starter)
    try:
        bootstrap = next(
            line.split("//")[1]
            for line in (tmp_path / "server.properties").read_text().splitlines()
            if "advertised" in line
        )
        assert admin(bootstrap).list_topics(timeout=30).brokers
    finally:
        owner.kill()
        owner.wait()
    wait_for(lambda: processes_of(str(tmp_path)) == [], "the broker of a killed parent to be gone")


def started(command: list[str], marker: Path) -> Child:
    child = Child([*command, str(marker)], grace_seconds=0.5, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert child.stdout.readline() == b"up\n"
    return child


def test_a_child_dies_when_its_guard_is_killed(tmp_path: Path) -> None:
    child = started([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"], tmp_path)
    guard = next(pid for pid in processes_of(str(tmp_path)) if b"guard.py" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(guard, signal.SIGKILL)
    wait_for(lambda: processes_of(str(tmp_path)) == [], "the child of a killed guard to be gone")
    child.wait(30)


def test_a_child_that_ignores_the_request_to_stop_is_killed_with_its_descendants(tmp_path: Path) -> None:
    # The inner shell leaves its parent's process group, as Spark's Python workers do.
    inner = f"setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' {tmp_path}/inner &"
    child = started(["sh", "-c", f"{inner} trap '' TERM; echo up; while :; do sleep 1; done"], tmp_path)
    wait_for(lambda: len(processes_of(f"{tmp_path}/inner")) > 0, "the inner process to be there")
    assert child.stop() == 128 + signal.SIGKILL
    assert processes_of(str(tmp_path)) == []


def test_a_child_hands_back_its_exit_code(tmp_path: Path) -> None:
    child = Child(["sh", "-c", "exit 3"], grace_seconds=1, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert child.wait(30) == 3
