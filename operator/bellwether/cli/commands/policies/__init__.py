"""Options and help of the commands for policy files."""
