"""Commands that move leadership manually through the operator: demote, promote, release, drain."""
