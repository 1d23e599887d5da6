"""Verbs that read and explain: check, doctor, explain, history."""
