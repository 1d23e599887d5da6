"""Command line: the work of each verb, by subject; ``commands`` has the options and the help."""
