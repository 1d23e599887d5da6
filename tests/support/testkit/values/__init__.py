"""Values for tests: builders with defaults, Hypothesis strategies."""
