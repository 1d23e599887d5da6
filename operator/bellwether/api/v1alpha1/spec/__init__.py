"""Models of ``spec``: the configuration in a policy."""
