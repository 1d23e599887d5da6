"""Canary probe: produce and fetch one small record per broker and period, as a client does."""
