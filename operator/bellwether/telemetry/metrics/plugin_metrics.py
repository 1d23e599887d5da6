"""Prometheus metrics of a prober with a plug-in signal type, in addition to those of every prober.

Updated by ``probes.plugins.plugin_probe``. Labels are bounded: brokers of one cluster, five results.
"""

from __future__ import annotations

from bellwether.core.signals import Signal
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics


class PluginMetrics:
    """Counts of one plug-in's measurements, in the prober's registry."""

    def __init__(self, metrics: ProbeMetrics) -> None:
        self._metrics = metrics
        self._measurements = metrics.registry.counter(
            "bellwether_probe_plugin_measurements",
            "Measurements of a plug-in signal type, by result (passing, failing, unknown, error, timeout).",
            "broker",
            "result",
        )

    def measured(self, broker: int, result: str) -> None:
        """One measurement."""
        self._measurements.labels(broker, result).inc()

    def judged(self, signal: Signal) -> None:
        """A broker's reading."""
        self._metrics.judged(signal)

    def gone(self, broker: int) -> None:
        """The broker is no longer measured: remove its series."""
        self._measurements.remove_by_labels({"broker": str(broker)})
        self._metrics.gone(broker)
