"""What each cure does to each kind of client, by the fault: ``make bench-cures``."""
