"""Quarantine agent: pauses the process of the broker beside it on the operator's order. Optional."""
