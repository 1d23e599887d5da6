"""Storage probe: how long small durable writes take in a broker's log directory."""
