"""How we look at brokers, one file a signal: measure (IO), then say what was seen."""
