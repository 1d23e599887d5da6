"""What the tests share: builders with defaults for plain cases, Hypothesis strategies for all the others."""
