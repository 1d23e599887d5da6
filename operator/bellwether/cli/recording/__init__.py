"""Verbs for traces: record, replay."""
