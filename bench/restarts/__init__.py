"""A rolling restart of real brokers under load, with the operator and without it, and what clients felt of each."""
