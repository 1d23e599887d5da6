"""Work without a Kubernetes API: leadership, rebalances and unclean elections by hand."""
