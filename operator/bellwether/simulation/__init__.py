"""The real reconcile on a cluster in memory with a virtual clock: forecasts of a policy, and simulations of faults."""
