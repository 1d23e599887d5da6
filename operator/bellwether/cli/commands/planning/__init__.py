"""Options and help of the commands that plan as the operator does."""
