"""Trace of a policy as plain values: the format of its lines, its sections and its state. Pure."""
