"""The Kafka cluster as Kubernetes objects describe it: Secrets, Strimzi resources, pods."""
