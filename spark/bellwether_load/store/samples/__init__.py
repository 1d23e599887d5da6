"""Samples in a store: written, compacted, read and expired."""
