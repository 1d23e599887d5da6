"""Leaders balanced by measured load, on Spark: from the sampler's history to loads, and from loads to a plan."""
