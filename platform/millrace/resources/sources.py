"""Where a job reads: the Kafka cluster, its sources, and the clock that gives events their time.

Only what is declared; reading is the job runtime's business.
"""

from collections.abc import Iterator
from typing import Literal

from millrace.resources import ddl
from millrace.resources.fields import Model, Problem, declared
from millrace.resources.types import (
    ColumnName,
    Ddl,
    DnsName,
    PositiveDuration,
    ServerList,
    StartFrom,
    StepName,
    TopicName,
)


class SecretRef(Model):
    """A Secret of the same namespace."""

    name: DnsName = declared("Name of the Secret, in the resource's own namespace.", change="restart")


class KafkaCluster(Model):
    """How to reach a Kafka cluster."""

    bootstrap_servers: ServerList | None = declared(
        "Brokers to ask first, as host:port, separated by commas. Without it the platform's own cluster is taken: "
        "the one the operator was installed with, or the broker of `millrace run`.",
        change="restart",
        default=None,
    )
    auth_secret: SecretRef | None = declared(
        "Secret with the credentials for the brokers: `username`, `password` and `mechanism` (SCRAM-SHA-512 by "
        "default, SCRAM-SHA-256 or PLAIN) for a login, `ca.crt` for TLS, `tls.crt` and `tls.key` for a client "
        "certificate. What is there decides. Without a Secret the connection is plaintext.",
        change="restart",
        default=None,
    )


class Clock(Model):
    """Two more clocks of an event, by which a wrong device clock is corrected: event time += received - sent."""

    sent: ColumnName = declared(
        "Timestamp column: when the device sent the event, by the device's clock.", change="new-state"
    )
    received: ColumnName = declared(
        "Timestamp column: when a server received it, by the server's clock.", change="new-state"
    )


class EventTime(Model):
    """Which column says when an event happened."""

    column: ColumnName = declared("Timestamp column with the time the event occurred.", change="new-state")
    clock: Clock | None = declared(
        "Corrects the event time of devices whose clock is wrong: it becomes column + (received - sent).",
        change="new-state",
        default=None,
    )
    max_future_skew: PositiveDuration = declared(
        "How far (duration) an event time may be ahead of the received clock, or without one of the broker's time. "
        "What is further ahead goes to the malformed topic and moves no watermark.",
        change="restart",
        default="5m",
    )

    def columns(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Every column it names, with the path of the field that names it."""
        yield ("column",), self.column
        if self.clock is not None:
            yield ("clock", "sent"), self.clock.sent
            yield ("clock", "received"), self.clock.received


class Source(Model):
    """One Kafka topic that the job reads from."""

    name: StepName = declared("Name by which steps refer to this source.", change="new-state")
    topic: TopicName = declared("Kafka topic to read.", change="new-state")
    format: Literal["json"] = declared("How a record's value is written.", change="restart", default="json")
    schema_: Ddl = declared(
        "Columns of an event as Spark DDL. A value that does not fit goes to the malformed topic.",
        change="new-state",
        eased="columns are only added",
        example="user string, at timestamp",
        alias="schema",
    )
    key: ColumnName | None = declared(
        "Column by which the producers key the topic; events of one value of it keep their order.",
        change="restart",
        default=None,
    )
    event_time: EventTime | None = declared(
        "When an event happened. Windows need it.", change="new-state", default=None
    )
    start_from: StartFrom = declared(
        "Where a job without state starts to read: earliest, latest, or a time such as 2026-01-31T08:00:00Z "
        "(the first record written at or after it).",
        change="new-state",
        default="earliest",
    )
    max_records_per_batch: int = declared(
        "The most records that one batch reads from this source; what is beyond waits in the log.",
        change="restart",
        default=500000,
        ge=1,
        le=1_000_000_000,
    )

    @property
    def identity(self) -> str:
        """What tells this source from the others when two versions of a job are compared."""
        return self.name

    @property
    def columns(self) -> tuple[ddl.Column, ...]:
        return ddl.parse(self.schema_)

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        try:
            columns = {column.name: column.type for column in self.columns}
        except ddl.DdlError as error:
            yield Problem(("schema",), str(error))
            return
        if self.key is not None and self.key not in columns:
            yield Problem(("key",), ddl.no_such_column(self.key, columns))
        if self.event_time is not None:
            yield from _time_columns(self.event_time, columns)


def _time_columns(event_time: EventTime, columns: dict[str, str]) -> Iterator[Problem]:
    for path, name in event_time.columns():
        at = ("eventTime", *path)
        if name not in columns:
            yield Problem(at, ddl.no_such_column(name, columns))
        elif columns[name] != "timestamp":
            yield Problem(at, f"must name a timestamp column; {name!r} is {columns[name]} in the schema")
