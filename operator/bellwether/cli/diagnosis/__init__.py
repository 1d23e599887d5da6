"""Diagnostic commands: check, doctor, explain, history."""
