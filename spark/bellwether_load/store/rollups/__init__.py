"""Hourly rollups: the table of measured traffic that is kept."""
