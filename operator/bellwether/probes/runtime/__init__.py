"""Processes of probers: policies that they serve, Leases, signals, metrics, health and their end."""
