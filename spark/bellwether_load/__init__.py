"""Spark jobs for load balancing: compute loads from the sampler's history, and a plan from the loads."""
