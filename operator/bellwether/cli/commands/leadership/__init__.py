"""Options and help of the commands that move leadership manually."""
