"""Rows of a result as records: a JSON object as value, a JSON object of the key columns as key."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}


def as_records(rows: DataFrame, key: Sequence[str], gone: DataFrame | None) -> DataFrame:
    """Columns `key` and `value`; a key that is gone, and not among the rows, has no value."""
    records = rows.select(_key(key).alias("key"), _json(rows.columns).alias("value"))
    if gone is None or not key:
        return records
    withdrawn = gone.select(_key(key).alias("key")).distinct().join(records.select("key"), "key", "left_anti")
    return records.unionByName(withdrawn.withColumn("value", F.lit(None).cast("binary")))


def _key(columns: Sequence[str]) -> Column:
    return _json(columns) if columns else F.lit(None).cast("binary")


def _json(columns: Sequence[str]) -> Column:
    return F.to_json(F.struct(*(F.col(f"`{name}`") for name in columns)), JSON).cast("binary")
