"""Probes: measure brokers from outside or from their pod, one package per signal, and post signals on changes."""
