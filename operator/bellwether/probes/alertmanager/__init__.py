"""Alertmanager probe: alerts that a webhook receives, as signals."""
