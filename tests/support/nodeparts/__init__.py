"""What runs on a whole node for tests: Kafka brokers as pods, a load balancer before them, Bellwether by its chart."""
