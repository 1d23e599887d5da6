"""Rebalance problems, measured loads and plans in a store."""
