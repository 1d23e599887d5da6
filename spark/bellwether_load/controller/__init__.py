"""The rebalance of a policy: from a request to an approved plan, in a thread of its own."""
