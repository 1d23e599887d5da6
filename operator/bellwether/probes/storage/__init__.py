"""Storage probe: how long small appends and syncs take in a broker's log directory."""
