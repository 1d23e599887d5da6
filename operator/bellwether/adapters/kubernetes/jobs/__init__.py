"""Kubernetes Jobs that measure loads and compute rebalance plans."""
