"""Record what is seen of a policy over time."""
