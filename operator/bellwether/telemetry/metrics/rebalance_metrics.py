"""Prometheus metrics of rebalances by load, served by ``operator_metrics``. Told by
``telemetry.metrics.operator_metrics``, which serves them.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from bellwether.core.rebalance.lifecycle import RebalanceRun, RunState
from bellwether.telemetry.metrics.metric_registry import PolicyGauge


class RebalanceMetrics:
    """State, partitions and loads of the rebalance that stands."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._state = PolicyGauge(
            "bellwether_rebalance_state",
            "1 for the state that the rebalance by load is in, 0 for the others.",
            ("state",),
            registry,
        )
        self._partitions = PolicyGauge(
            "bellwether_rebalance_partitions",
            "Partitions of the load plan that were applied, or left out.",
            ("what",),
            registry,
        )
        self._load = PolicyGauge(
            "bellwether_rebalance_load_bytes_per_second",
            "Load of the busiest broker, per 100 of capacity: before the load plan, after it, and what none can beat.",
            ("when",),
            registry,
        )

    def stands(self, namespace: str, policy: str, run: RebalanceRun | None) -> None:
        """How the rebalance stands; None where the policy asks for none."""
        if run is None:
            self.forget(namespace, policy)
            return
        self._state.tell(namespace, policy, {(str(state),): float(run.state is state) for state in RunState})
        left = sum(run.left.values())
        self._partitions.tell(namespace, policy, {("applied",): run.taken_up - left, ("left",): left})
        figures = run.figures
        loads = (
            {}
            if figures is None
            else {("before",): figures.before, ("after",): figures.after, ("bound",): figures.bound}
        )
        self._load.tell(namespace, policy, loads)

    def forget(self, namespace: str, policy: str) -> None:
        """Say nothing of a policy that another process leads, or that is gone."""
        for gauge in (self._state, self._partitions, self._load):
            gauge.forget(namespace, policy)
