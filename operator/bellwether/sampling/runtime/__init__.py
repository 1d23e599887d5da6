"""The process that samples: the clusters of policies, their stores and connections."""
