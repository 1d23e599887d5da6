"""Measuring load: what brokers are asked each minute, what is written down of it, and its hourly rollups."""
