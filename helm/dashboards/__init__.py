"""The Grafana dashboards of the chart, as Python: panels with their queries in, JSON out (``dashboards.generate``)."""
