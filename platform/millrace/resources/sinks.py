"""Where results go: a Kafka topic or a PostgreSQL table."""

from typing import Annotated, Literal

from pydantic import Field

from millrace.resources.fields import Model, Rule, declared
from millrace.resources.sources import SecretRef
from millrace.resources.types import ColumnName, TableName, TopicName

Delivery = Literal["exactly-once", "at-least-once"]
KeyColumns = Annotated[tuple[ColumnName, ...], Field(strict=False, min_length=1, max_length=32)]


class Postgres(Model):
    """A table in PostgreSQL that holds the latest row of each key."""

    secret: SecretRef = declared(
        "Secret with the connection: either key `url` (postgresql://user:password@host:port/database), or keys `host`, "
        "`port`, `database`, `user`, `password` and where needed `sslmode`. Without a cluster, a Secret called db-main "
        "is the environment variable MILLRACE_SECRET_DB_MAIN with the url, or the folder db-main, one file for each "
        "key, in the folder that MILLRACE_SECRETS names.",
        change="restart",
    )
    table: TableName = declared("Table to write, as table or schema.table.", change="restart")
    key: KeyColumns = declared(
        "Columns that tell one row from another; a newer row of the same key replaces the older.",
        change="restart",
        example="[window_start, url]",
    )


class Sink(Model):
    """One place for the results of the last step: exactly one of topic and postgres."""

    topic: TopicName | None = declared("Kafka topic to write JSON records to.", change="restart", default=None)
    postgres: Postgres | None = declared("PostgreSQL table to write rows to.", change="restart", default=None)
    key: KeyColumns | None = declared(
        "Columns that make up the key of a Kafka record, which also decides its partition. Without it records have no "
        "key. Only for topics.",
        change="restart",
        default=None,
    )
    delivery: Delivery = declared(
        "exactly-once: each result appears once, also after a crash. at-least-once: cheaper, a crash may repeat some.",
        change="restart",
        default="exactly-once",
    )

    rules = (
        Rule(
            at="",
            says="must have exactly one of topic and postgres; make a sink of its own for each",
            holds=lambda s: (s.topic is None) != (s.postgres is None),
            cel="has(self.topic) != has(self.postgres)",
        ),
        Rule(
            at="key",
            says="belongs to topics only; a table's key is postgres.key",
            holds=lambda s: s.postgres is None or s.key is None,
            cel="!has(self.postgres) || !has(self.key)",
        ),
    )

    @property
    def name(self) -> str:
        """The topic or the table: what metrics, transactions and reports call this sink."""
        return self.topic if self.topic is not None else self._table.table

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The key's columns, for a topic as for a table; empty where records have no key."""
        return (self.key or ()) if self.postgres is None else self.postgres.key

    @property
    def identity(self) -> str:
        """What tells this sink from the others when two versions of a job are compared."""
        return self.name

    @property
    def _table(self) -> Postgres:
        if self.postgres is None:
            raise ValueError("a sink is a topic or a table")
        return self.postgres
