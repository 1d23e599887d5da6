"""Diagnose partitions that risk losing writes, reads or records, and say what a person can do."""
