"""Execute a plan: batches, checks around every request, recovery of the undo record."""
