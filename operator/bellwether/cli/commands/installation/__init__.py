"""Options and help of the verbs around an installation."""
