"""Compute the load of partitions from their samples: numpy only, no Spark and no IO.

In the order of use: samples (of many partitions at once: sorted, unique times, intervals between them), sizes (bytes of
an interval), sketches (how long a rate was near which value), rollups (an hour of samples), loads (many hours).
"""
