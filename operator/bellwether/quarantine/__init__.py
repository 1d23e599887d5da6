"""Quarantine agent: pauses the process of the broker next to it on the operator's order. Optional."""
