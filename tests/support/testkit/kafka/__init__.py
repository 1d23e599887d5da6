"""Kafka for tests: real clusters, scripted brokers, clients."""
