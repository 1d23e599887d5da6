"""Samples in a store: written, listed and read."""
