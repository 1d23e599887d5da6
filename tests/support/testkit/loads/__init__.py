"""Load samples, problems and plans for tests."""
