"""Runs the suites on further versions of Kafka, Kubernetes, Helm, Python and Spark, and writes what passed."""
