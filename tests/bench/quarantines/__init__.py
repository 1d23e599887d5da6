"""What a broker with a slow disk costs ``acks=all``: untouched, demoted, quarantined. ``make bench-quarantine``."""
