"""The HTTP API of Prometheus, and of what speaks it besides: Thanos, Mimir, VictoriaMetrics."""
