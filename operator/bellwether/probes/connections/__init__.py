"""Self-reachability probe: are external clients connected to the broker next to which this process runs."""
