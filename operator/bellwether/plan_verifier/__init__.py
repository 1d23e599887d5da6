"""Verify a rebalance plan from its inputs alone, with the standard library only: ``docs/load/certificate.md``."""
