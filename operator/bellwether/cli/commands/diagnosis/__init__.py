"""Options and help of the diagnostic commands."""
