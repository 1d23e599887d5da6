"""Kubernetes objects of the Kafka cluster: Secrets, Strimzi resources, pods."""
