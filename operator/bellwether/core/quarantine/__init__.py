"""Decide which broker's process is paused so that it leaves the ISR, and when the agent pauses and releases it."""
