"""Quarantine agent: holds the process of the broker next to it on the operator's order. Optional."""
