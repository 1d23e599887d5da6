"""Kafka behind the ports; two clients are hidden here."""
