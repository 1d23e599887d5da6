"""Real faults on real parts: what is broken, what Bellwether should say of it, and what it says."""
