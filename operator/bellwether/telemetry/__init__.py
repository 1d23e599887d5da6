"""Metrics and logs of our own work."""
