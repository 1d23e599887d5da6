"""Models of ``status``: what operator and probers report."""
