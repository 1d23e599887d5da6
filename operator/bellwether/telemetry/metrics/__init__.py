"""Prometheus metrics of the operator, the probers and the sampler, and the registry that serves them."""
