"""Prometheus metrics of rebalances by load, updated and served by ``telemetry.metrics.operator_metrics``."""

from __future__ import annotations

from bellwether.core.rebalance.lifecycle import RebalanceRun, RunState
from bellwether.telemetry.metrics.metric_registry import LabelledRegistry, PolicyGauge


class RebalanceMetrics:
    """State, partitions and loads of the current rebalance."""

    def __init__(self, registry: LabelledRegistry) -> None:
        self._state = PolicyGauge(
            "bellwether_rebalance_state",
            "1 for the current state of the rebalance by load, 0 for the others.",
            ("state",),
            registry,
        )
        self._partitions = PolicyGauge(
            "bellwether_rebalance_partitions",
            "Partitions of the load plan, by result (applied, skipped).",
            ("result",),
            registry,
        )
        self._load = PolicyGauge(
            "bellwether_rebalance_load_bytes_per_second",
            "Load of the busiest broker, in bytes per second per 100 units of capacity: before the plan, after it, and"
            " the lower bound of any plan.",
            ("when",),
            registry,
        )

    def update(self, namespace: str, policy: str, run: RebalanceRun | None) -> None:
        """Update from the current rebalance; None if the policy has none."""
        if run is None:
            self.forget(namespace, policy)
            return
        self._state.set_series(namespace, policy, {(str(state),): float(run.state is state) for state in RunState})
        left = sum(run.left.values())
        self._partitions.set_series(namespace, policy, {("applied",): run.taken_up - left, ("skipped",): left})
        figures = run.figures
        loads = (
            {}
            if figures is None
            else {("before",): figures.before, ("after",): figures.after, ("bound",): figures.bound}
        )
        self._load.set_series(namespace, policy, loads)

    def forget(self, namespace: str, policy: str) -> None:
        """Remove the series of a policy that another process leads, or that was deleted."""
        for gauge in (self._state, self._partitions, self._load):
            gauge.forget(namespace, policy)
