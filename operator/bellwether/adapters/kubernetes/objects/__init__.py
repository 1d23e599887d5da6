"""Objects that Bellwether keeps in Kubernetes: BrokerHealths, status, events, undo record, audit log."""
