"""Choosing leaders, with numpy alone: no Spark, no IO. Partition-sized work goes block by block."""
