"""What it costs clients to move a broker's leaders away and back, on real brokers, by the number of leaders."""
