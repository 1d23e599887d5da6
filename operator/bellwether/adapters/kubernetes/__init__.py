"""Kubernetes adapters: implementations of the ports on the Kubernetes API."""
