"""The HTTP API of Prometheus, also served by Thanos, Mimir and VictoriaMetrics."""
