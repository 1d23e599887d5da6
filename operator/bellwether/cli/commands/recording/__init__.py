"""Options and help of the verbs for traces."""
