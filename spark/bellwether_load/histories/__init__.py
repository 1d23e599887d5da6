"""What the samples of a partition say of its load: numpy alone, no Spark and no IO.

In the order of use: samples (many partitions at once), order (sorted, each moment once), intervals (what lies between
two samples), sizes (bytes of an interval), quantiles, measures.
"""
