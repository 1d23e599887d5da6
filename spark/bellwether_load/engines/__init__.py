"""Where the work on record batches runs: in tasks on Spark, or in this process, with the same functions and results."""
