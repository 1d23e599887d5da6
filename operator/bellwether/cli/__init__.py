"""Command line: implementation of the commands, by subject; ``commands`` has the options and help texts."""
