"""Verbs for rebalancing by load: rebalance, plan, verify-plan, sample."""
