"""Replay a trace through the real reconcile, with the recorded settings or with others."""
