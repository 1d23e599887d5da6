"""The Kubernetes API behind the ports."""
