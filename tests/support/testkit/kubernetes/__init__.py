"""Kubernetes for tests: objects, the API in memory, accounts of the chart, Strimzi's resources."""
