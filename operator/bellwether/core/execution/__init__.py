"""Decide how a plan is carried out: batches, checks around every request, recovery of the undo record."""
