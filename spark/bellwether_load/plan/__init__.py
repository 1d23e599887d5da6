"""Rebalance leaders by load: problem, plan, approval, and rollout of the plan in waves."""
