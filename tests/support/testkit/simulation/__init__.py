"""Operators and scenarios on a simulated cluster, in memory."""
