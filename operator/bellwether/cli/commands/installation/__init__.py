"""Options and help of the installation commands."""
