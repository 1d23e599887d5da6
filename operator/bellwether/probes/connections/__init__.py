"""Self-reachability probe: are external clients connected to the broker beside which this process runs."""
