"""The shipped fake for tests and replays: a Kafka cluster in memory that behaves like the real one."""
