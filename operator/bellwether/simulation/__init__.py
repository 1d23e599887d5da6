"""The real reconcile on a cluster in memory with a virtual clock: forecasts, simulations of faults, and replays."""
