"""Plug-in probe: signal types that other packages bring along, measured and counted."""
