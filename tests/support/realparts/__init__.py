"""Starts the real parts without a container engine: Kafka, a load balancer, a Kubernetes API server, a slow disk.

Demo, tests and benchmarks all start them here. Nothing needs root; whatever is downloaded or built is pinned, checked
and kept in one cache outside the repository (see ``cache``). ``python -m realparts.prepare`` fills that cache.
"""
