"""Mutation test of the core: ``make mutation-test``, which runs ``python -m mutants``."""
