"""What is known of a cluster and of earlier reconciles: immutable values that later stages read."""
