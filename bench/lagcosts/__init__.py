"""What a round of the replication probe costs on a huge cluster: ``python -m lagcosts``."""
