"""Models of the operator configuration file: what an administrator decides, and policies refer to by name."""
