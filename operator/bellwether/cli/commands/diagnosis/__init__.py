"""Options and help of the verbs that read and explain."""
