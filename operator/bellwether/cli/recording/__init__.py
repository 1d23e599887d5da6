"""Commands for traces: record, replay."""
