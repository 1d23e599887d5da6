"""Requests to one broker: is it serving, where do its logs end, how large are they."""
