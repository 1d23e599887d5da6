"""What detection costs while nothing happens: many brokers, real probers, a real operator and a real API server."""
