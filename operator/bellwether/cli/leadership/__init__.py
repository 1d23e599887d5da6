"""Verbs that move leadership by hand through the operator: demote, promote, release, drain."""
