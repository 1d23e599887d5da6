"""What a policy asks for: settings as typed values with their defaults."""
