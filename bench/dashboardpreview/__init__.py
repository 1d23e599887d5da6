"""Run by ``make dashboards-preview``: the dashboards, drawn from a real Prometheus in a real browser."""
