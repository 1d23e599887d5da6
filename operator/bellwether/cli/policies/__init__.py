"""Commands for policies that are kept as files: lint, diff, simulate."""
