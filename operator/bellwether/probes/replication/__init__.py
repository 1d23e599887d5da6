"""Replication probe: how far each follower lags behind its leader, in seconds."""
