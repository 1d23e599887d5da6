"""Report a reconcile: conditions of policy and brokers, counts, and the audit trail."""
