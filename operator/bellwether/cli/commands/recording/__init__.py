"""Options and help of the commands for traces."""
