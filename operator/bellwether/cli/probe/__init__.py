"""Probers of ``bellwether probe``, one per file, configured from the policy."""
