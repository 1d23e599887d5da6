"""Verify a rebalance plan from its inputs alone, with the standard library only: ``docs/internals/plan-certificate.md``."""
