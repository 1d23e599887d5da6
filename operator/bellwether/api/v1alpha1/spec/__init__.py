"""Models of ``spec``: what a policy asks for."""
