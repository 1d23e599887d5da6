"""Bellwether moves leadership away from sick Apache Kafka brokers, and back when they are well."""

__version__ = "0.1.0"
