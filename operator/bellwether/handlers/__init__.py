"""Thin kopf handlers: they turn events into wake-ups and own the wiring."""
