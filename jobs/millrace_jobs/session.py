"""The Spark session of a job, with defaults that are fast on small machines and right on large ones."""

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from millrace.local.java import find_jars

TASK_ATTEMPTS = 4
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def build_session(name: str, master: str | None = None, extra: Mapping[str, str] | None = None) -> SparkSession:
    """A new or the running session. Without a master it is this machine, with all its cores."""
    # Workers must run this very interpreter, not the first python3 on the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(name).master(master or f"local[*,{TASK_ATTEMPTS}]")
    here = LOOPBACK if master is None or master.startswith("local") else {}
    for key, value in {**defaults(), **here, **(extra or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if extra is None or "spark.sql.shuffle.partitions" not in extra:
        spark.conf.set("spark.sql.shuffle.partitions", str(max(1, spark.sparkContext.defaultParallelism)))
    return spark


def defaults() -> dict[str, str]:
    """Settings, with the reason where it is not plain."""
    jars = f"{find_jars('spark')}/*"
    return {
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # Slots are numbered by partition, and a batch is small: replanning between stages costs more than it gains.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
        "spark.sql.shuffle.partitions": "2",
    }
