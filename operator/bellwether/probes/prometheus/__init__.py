"""Prometheus probe: what the policy's queries say of each broker."""
