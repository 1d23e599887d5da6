"""Diagnose partitions that risk losing writes, reads or records, and list remediations."""
