"""Settings of a policy as typed values with their defaults."""
