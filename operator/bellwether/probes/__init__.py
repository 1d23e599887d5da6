"""Probes: measure brokers from outside or beside them, one package per signal, and post signals on changes."""
