"""The operator configuration of stores and job profiles."""
