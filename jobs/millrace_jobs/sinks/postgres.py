"""Rows into PostgreSQL: the latest row of each key, written in one transaction with the batch's number.

The number stands in a table of ours, one row for each slot. Whoever holds that row's lock writes; an attempt that finds
its batch's number there, or a later one, writes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from millrace.resources.secrets import read_secret
from millrace.resources.sinks import Postgres
from millrace_jobs.sinks.kafka import SinkFailedError
from millrace_jobs.sinks.slots import Batches

GONE = "_gone"
CONNECT_SECONDS = 10
_TYPES = {
    "string": "text",
    "boolean": "boolean",
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}


def as_rows(rows: DataFrame, gone: DataFrame | None) -> DataFrame:
    """The rows with GONE beside them; nested values as JSON text."""
    kept = rows.select(*(_plain(rows, name) for name in rows.columns), F.lit(False).alias(GONE))
    if gone is None:
        return kept
    return kept.unionByName(gone.withColumn(GONE, F.lit(True)), allowMissingColumns=True)


def _plain(rows: DataFrame, name: str) -> Column:
    column = F.col(f"`{name}`")
    return column if column_type(rows.schema[name].dataType) != "jsonb" else F.to_json(column).alias(name)


def column_type(kind: DataType) -> str:
    """PostgreSQL's type for one of Spark's; what has parts becomes jsonb."""
    text = kind.simpleString()
    return f"numeric{text[7:]}" if text.startswith("decimal") else _TYPES.get(text, "jsonb")


@dataclass(frozen=True)
class PostgresTarget:
    """A table, written by one job as one of its sinks."""

    address: str
    job: str
    state: str
    table: str
    key: tuple[str, ...]
    columns: Mapping[str, str]
    exactly_once: bool

    @classmethod
    def of(
        cls,
        job: str,
        state: str,
        sink: Postgres,
        result: StructType,
        environment: Mapping[str, str],
        exactly_once: bool,
    ) -> "PostgresTarget":
        address = connection(read_secret(sink.secret.name, environment))
        columns = {field.name: column_type(field.dataType) for field in result.fields}
        return cls(address, job, state, sink.table, sink.key, columns, exactly_once)

    def by(self) -> Column:
        return F.xxhash64(*(F.col(f"`{name}`") for name in self.key))

    def write(self, slot: int, batch: int, rows: Batches) -> int:
        try:
            with psycopg.connect(self.address, connect_timeout=CONNECT_SECONDS) as connection:
                _prepare(connection, self.table, self.columns, self.key)
                if self.exactly_once and not _take_turn(connection, (self.job, self.table, slot, self.state), batch):
                    return sum(one.num_rows for one in rows)
                return sum(self._write_rows(connection, one.schema.names, one.to_pylist()) for one in rows)
        except psycopg.Error as error:
            raise SinkFailedError(f"table {self.table}: {str(error).strip().splitlines()[0]}") from error

    def _write_rows(self, connection: psycopg.Connection[Any], names: Sequence[str], rows: list[dict[str, Any]]) -> int:
        columns = [name for name in names if name != GONE]
        upsert, delete = _upsert(self.table, columns, self.key), _delete(self.table, self.key)
        with connection.cursor() as cursor:
            cursor.executemany(delete, [[row[name] for name in self.key] for row in rows if row[GONE]])
            cursor.executemany(upsert, [[row[name] for name in columns] for row in rows if not row[GONE]])
        return len(rows)


def connection(secret: Mapping[str, str]) -> str:
    """A connection string from a Secret's keys: `url`, or host, port, database, user and password."""
    if "url" in secret:
        return secret["url"]
    names = {"host": "host", "port": "port", "database": "dbname", "user": "user", "password": "password"}
    return psycopg.conninfo.make_conninfo(**{theirs: secret[ours] for ours, theirs in names.items() if ours in secret})


def _prepare(connection: psycopg.Connection[Any], table: str, columns: Mapping[str, str], key: Sequence[str]) -> None:
    """Make the table of positions and the sink's own table where they are missing."""
    fields = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in columns.items()
    )
    unique = sql.SQL(", ").join(map(sql.Identifier, key))
    connection.execute("SELECT pg_advisory_xact_lock(7077)")  # CREATE IF NOT EXISTS is not safe against itself
    connection.execute(
        "CREATE TABLE IF NOT EXISTS millrace_positions "
        "(job text, sink text, slot int, state text, batch bigint, PRIMARY KEY (job, sink, slot))"
    )
    connection.execute(
        sql.SQL("CREATE TABLE IF NOT EXISTS {} ({}, UNIQUE NULLS NOT DISTINCT ({}))").format(
            _identifier(table), fields, unique
        )
    )
    connection.commit()


def _take_turn(connection: psycopg.Connection[Any], writer: tuple[str, str, int, str], batch: int) -> bool:
    """Lock the writer's row; False when the batch is done already. A new state of the job counts from 0 again."""
    job, sink, slot, state = writer
    connection.execute(
        "INSERT INTO millrace_positions VALUES (%s, %s, %s, %s, -1) ON CONFLICT DO NOTHING", (job, sink, slot, state)
    )
    moved = connection.execute(
        "UPDATE millrace_positions SET batch = %s, state = %s "
        "WHERE job = %s AND sink = %s AND slot = %s AND (batch < %s OR state <> %s)",
        (batch, state, job, sink, slot, batch, state),
    )
    return moved.rowcount == 1


def _identifier(table: str) -> sql.Identifier:
    return sql.Identifier(*table.split("."))


def _upsert(table: str, columns: Sequence[str], key: Sequence[str]) -> sql.Composed:
    rest = [name for name in columns if name not in key]
    action = sql.SQL("DO UPDATE SET {}").format(
        sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in rest)
    )
    return sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) {}").format(
        _identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join([sql.Placeholder()] * len(columns)),
        sql.SQL(", ").join(map(sql.Identifier, key)),
        action if rest else sql.SQL("DO NOTHING"),
    )


def _delete(table: str, key: Sequence[str]) -> sql.Composed:
    same = sql.SQL(" AND ").join(
        sql.SQL("{} IS NOT DISTINCT FROM {}").format(sql.Identifier(name), sql.Placeholder()) for name in key
    )
    return sql.SQL("DELETE FROM {} WHERE {}").format(_identifier(table), same)
