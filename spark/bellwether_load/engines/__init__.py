"""Where the tasks of a job run: in this process or on Spark, with the same functions and results."""
