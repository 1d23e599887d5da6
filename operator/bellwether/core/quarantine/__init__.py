"""Decide which broker's process is held so that it leaves the ISR, and when the agent holds and releases it."""
