"""Prometheus probe: judge each broker by the policy's queries."""
