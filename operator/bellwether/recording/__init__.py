"""Record what is seen of a policy over time, and replay it through the real reconcile."""
