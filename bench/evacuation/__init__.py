"""How long it takes to move all leaders away from a broker and back, next to the fewest requests that Kafka allows."""
