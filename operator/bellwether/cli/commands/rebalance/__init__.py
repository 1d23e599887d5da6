"""Options and help of the commands for rebalancing by load."""
