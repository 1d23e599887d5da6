"""Models of ``status``: what the operator and the probers report."""
