"""Ports: the protocols through which a reconcile meets the world, and the errors that they raise."""
