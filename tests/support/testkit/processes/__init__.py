"""Real processes for tests: operators and probers on a real API server, and how test runs are divided."""
