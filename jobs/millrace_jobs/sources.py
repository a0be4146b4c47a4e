"""The job's stream of raw records: every source's topic, read within its bounds. Nothing is parsed here."""

from collections.abc import Mapping
from datetime import datetime
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.resources.sources import Source

# A broker that is away is to be told within half a minute; the clients' own patience is three minutes, in silence.
_PATIENCE = {
    "kafka.default.api.timeout.ms": "15000",
    "kafka.request.timeout.ms": "10000",
    "fetchOffset.numRetries": "1",
}
_COLUMNS = ("key", "value", "topic", "partition", "offset")


def stream(
    spark: SparkSession, sources: tuple[Source, ...], bootstrap: str, client: Mapping[str, str], parallelism: int
) -> DataFrame:
    """One stream over all sources. Each partition's records stay together and in order: late depends on it."""
    streams = [_stream(spark, source, bootstrap, client) for source in sources]
    # Fewer tasks than partitions: one that reads several, one after the other, costs less than several tasks.
    return reduce(DataFrame.unionByName, streams).coalesce(parallelism)


def _stream(spark: SparkSession, source: Source, bootstrap: str, client: Mapping[str, str]) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": source.topic,
        "maxOffsetsPerTrigger": str(source.max_records_per_batch),
        "kafka.isolation.level": "read_committed",  # what a transaction took back was never there
        "failOnDataLoss": "false",  # records that retention took are counted in the ledger; stopping saves none of them
        **_PATIENCE,
        **_start(source.start_from),
        **{f"kafka.{name}": value for name, value in client.items()},
    }
    read = spark.readStream.format("kafka").options(**options).load()
    return read.select(*_COLUMNS, F.unix_micros("timestamp").alias("timestamp"))


def _start(start: str | datetime) -> dict[str, str]:
    if isinstance(start, datetime):
        millis = str(int(start.timestamp() * 1000))
        return {"startingTimestamp": millis, "startingOffsetsByTimestampStrategy": "latest"}
    return {"startingOffsets": start}
