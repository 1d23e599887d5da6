"""Controllers of the operator: kopf's watches, one thread per policy, and everything around a reconcile."""
