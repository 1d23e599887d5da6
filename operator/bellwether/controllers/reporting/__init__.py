"""Report a reconcile to Kubernetes: status, conditions, events and metrics."""
