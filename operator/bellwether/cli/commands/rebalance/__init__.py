"""Options and help of the verbs for rebalancing by load."""
