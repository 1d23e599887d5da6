"""Pages for people: one file each with all that it needs, readable without scripts and without a network. Pure."""
