"""A real one-node Kafka of our own, for local mode and for tests.

It listens on loopback only, keeps its data in the folder it is given, and never outlives the process that started it.
Not for production: one node, no replicas, and the ordinary door asks nobody who he is.
"""

import base64
import contextlib
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException

from millrace.errors import UserError
from millrace.kafka.clients import admin
from millrace.local.java import find_jars, find_java
from millrace.local.processes import Child

HOST = "127.0.0.1"
READY_SECONDS = 90.0  # about 5 s on an idle machine; generous, because two busy cores are the usual case
STOP_SECONDS = 20.0
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256")
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
REAUTHENTICATION_MS = 10_000  # short, so that a changed password is soon felt
PORT_ATTEMPTS = 3  # a free port can be taken by someone else between our look and Kafka's bind

LOGGING = """\
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
logger.start.name = kafka.server.KafkaRaftServer
logger.start.level = INFO
appender.console.name = console
appender.console.type = Console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
"""


class PortTakenError(UserError):
    """The port that was asked for belongs to another process."""


class EmbeddedKafka:
    """Context manager: a broker that is ready to use inside, and gone with all its processes after.

    The data stays in `data_dir`; a later broker on the same folder finds the topics again. With `identity`, a file with
    the broker's key and certificate in PEM form, it has a second door that asks for TLS and a login.
    """

    def __init__(
        self, data_dir: Path | str, heap: str = "512m", port: int | None = None, identity: Path | None = None
    ) -> None:
        self._folder = Path(data_dir)
        self._identity = identity
        self._protected_port: int | None = None
        self._heap = heap
        self._asked_port = port
        self._port: int | None = None
        self._child: Child | None = None

    @property
    def bootstrap(self) -> str:
        """The address for clients, as HOST:PORT."""
        if self._port is None:
            raise RuntimeError("the embedded broker is not running")
        return f"{HOST}:{self._port}"

    @property
    def protected_bootstrap(self) -> str:
        """The address of the door that asks for TLS and a login."""
        if self._protected_port is None:
            raise RuntimeError("the embedded broker is not running, or has no such door")
        return f"{HOST}:{self._protected_port}"

    @property
    def log_file(self) -> Path:
        return self._folder / "broker.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the broker and return when a client gets its metadata."""
        java, jars = find_java(), find_jars("broker")
        if self._asked_port is not None and not _is_free(self._asked_port):
            raise PortTakenError(_port_taken(self._asked_port))
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "log4j2.properties").write_text(LOGGING)
        for attempt in range(1, PORT_ATTEMPTS + 1):
            try:
                return self._start_once(
                    [java, f"-Dlog4j2.configurationFile={self._folder}/log4j2.properties", "-cp", f"{jars}/*"]
                )
            except PortTakenError:
                if self._asked_port is not None or attempt == PORT_ATTEMPTS:
                    raise

    def stop(self) -> None:
        """Stop it cleanly; kill it when that takes too long. Does nothing when it is not running."""
        child, self._child, self._port, self._protected_port = self._child, None, None, None
        if child is not None:
            child.stop()

    def is_running(self) -> bool:
        return self._child is not None and self._child.exit_code() is None

    def _start_once(self, java: list[str]) -> None:
        ports = _free_ports(3)
        port = self._asked_port or ports[0]
        settings = self._folder / "server.properties"
        written = server_properties(self._folder / "log", port, controller_port=ports[1])
        if self._identity is not None:
            written |= protected_door(written, ports[2], self._identity)
        settings.write_text("".join(f"{name}={value}\n" for name, value in written.items()))
        if not (self._folder / "log" / "meta.properties").exists():
            self._format(java, settings)
        with self.log_file.open("wb") as log:
            command = [java[0], f"-Xmx{self._heap}", "-XX:+UseSerialGC", *java[1:], "kafka.Kafka", str(settings)]
            self._child = Child(command, grace_seconds=STOP_SECONDS, stdout=log, stderr=subprocess.STDOUT)
        self._port, self._protected_port = port, ports[2] if self._identity is not None else None
        try:
            self._wait_until_ready(time.monotonic() + READY_SECONDS)
        except BaseException:  # also Ctrl-C: whoever does not get a broker must not be left with its process
            self.stop()
            raise

    def _format(self, java: list[str], settings: Path) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        # Compiling for a second's work costs more than it gains.
        command = [java[0], "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *java[1:]]
        command += ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", f"--config={settings}"]
        with self.log_file.open("wb") as log:
            child = Child(command, grace_seconds=0, stdout=log, stderr=subprocess.STDOUT)
        try:
            failed = child.wait(READY_SECONDS) != 0
        finally:
            child.stop()
        if failed:
            raise UserError(
                f"The data folder {self._folder} could not be prepared for a broker; the reason is in {self.log_file}."
            )

    def _wait_until_ready(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            if not self.is_running():
                raise self._explain_exit()
            if _accepts(self._port or 0) and _answers(self.bootstrap):
                return
            time.sleep(0.1)
        raise UserError(
            f"The embedded broker was not ready after {READY_SECONDS:.0f} s; its log is {self.log_file}. "
            "If the machine is busy, try again, or give a running broker with --bootstrap."
        )

    def _explain_exit(self) -> UserError:
        log = self.log_file.read_text(errors="replace")
        if "Address already in use" in log:
            return PortTakenError(_port_taken(self._port or 0))
        if "Failed to acquire lock" in log:
            return UserError(
                f"Another broker is using the folder {self._folder}: stop it, or choose another folder with --state."
            )
        if "No space left on device" in log:
            return UserError(
                f"The disk of {self._folder} is full: free some space, or choose another folder with --state."
            )
        return UserError(f"The embedded broker ended while starting; its log is {self.log_file}.")


def server_properties(log_dir: Path, port: int, controller_port: int) -> dict[str, object]:
    """The settings of a broker that is its own controller. Small internal topics: it serves one machine."""
    settings: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CLIENT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"CLIENT://{HOST}:{port}",
        "inter.broker.listener.name": "CLIENT",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": log_dir,
        "auto.create.topics.enable": "false",  # a misspelt topic must be an error, not an empty stream
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.dedupe.buffer.size": 16 * 2**20,  # the default takes a quarter of our small heap
        "num.network.threads": 2,
        "num.io.threads": 4,
    }
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        settings |= {f"{topic}.replication.factor": 1, f"{topic}.num.partitions": 4}
    for topic in ("transaction.state.log", "share.coordinator.state.topic"):
        settings[f"{topic}.min.isr"] = 1
    return settings


def protected_door(settings: Mapping[str, object], port: int, identity: Path) -> dict[str, object]:
    """What the settings need for a listener with TLS and SCRAM. Its users are made by the admin client."""
    own = "listener.name.protected"
    return {
        "listeners": f"{settings['listeners']},PROTECTED://{HOST}:{port}",
        "advertised.listeners": f"{settings['advertised.listeners']},PROTECTED://{HOST}:{port}",
        "listener.security.protocol.map": f"{settings['listener.security.protocol.map']},PROTECTED:SASL_SSL",
        f"{own}.ssl.keystore.type": "PEM",
        f"{own}.ssl.keystore.location": identity,
        f"{own}.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{f"{own}.{name.lower()}.sasl.jaas.config": f"{SCRAM} required;" for name in MECHANISMS},
        # whoever is in has to prove again and again that his password still holds
        f"{own}.connections.max.reauth.ms": REAUTHENTICATION_MS,
    }


def _port_taken(port: int) -> str:
    return f"Port {port} is taken by another process: stop that process, or choose another port."


def _free_ports(count: int) -> list[int]:
    """Distinct free ports: all are held at once while looking."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [opened.getsockname()[1] for opened in sockets]


def _is_free(port: int) -> bool:
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True


def _accepts(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _answers(bootstrap: str) -> bool:
    """Whether a real client gets metadata with a live broker in it."""
    try:
        return len(admin(bootstrap).list_topics(timeout=5).brokers) > 0
    except KafkaException:
        return False
