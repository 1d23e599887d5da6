"""Verify a rebalance plan from its inputs alone, with the standard library: ``docs/internals/plan-certificate.md``."""
