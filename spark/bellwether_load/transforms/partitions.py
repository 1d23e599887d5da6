"""The partitions of a problem beside their measured rates, in the one order that everything else counts by."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

KEY = ("topic", "topic_id", "partition")


def with_rates(partitions: DataFrame, loads: DataFrame, statistic: str, pieces: int) -> DataFrame:
    """Partitions with ``produce`` and ``consume`` in bytes/s (null: unknown), sorted by topic, topic id and partition.

    ``statistic``: ``median``, ``p95`` or ``peak``. A partition that was measured without its consumers has produce
    alone. ``pieces``: into how many Spark partitions the rows are cut, in order.
    """
    rates = loads.select(
        "topic_id",
        "partition",
        sql.col(f"produce_{statistic}").alias("produce"),
        sql.col(f"consume_{statistic}").alias("consume"),
    )
    joined = partitions.join(rates, ["topic_id", "partition"], "left")
    columns = joined.select(*KEY, "replicas", "isr", "leader", "held", "produce", "consume")
    return columns.repartitionByRange(pieces, *KEY).sortWithinPartitions(*KEY)


def lines(partitions: DataFrame) -> DataFrame:
    """The partitions with ``line``, what the problem's digest hashes of each (docs/load/files.md)."""
    whole = {name: sql.rint(name).cast("bigint").cast("string") for name in ("produce", "consume")}
    known = sql.col("produce").isNotNull()
    line = sql.concat_ws(
        "\t",
        *KEY,
        sql.array_join("replicas", ","),
        sql.array_join("isr", ","),
        "leader",
        "held",
        sql.when(known, whole["produce"]).otherwise("-"),
        sql.when(known, sql.coalesce(whole["consume"], sql.lit("0"))).otherwise("-"),
    )
    return partitions.withColumn("line", line)
