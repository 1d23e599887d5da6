"""What rollups and loads take: CPU seconds, memory and bytes a row, in one process and on Spark."""
