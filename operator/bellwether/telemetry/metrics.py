"""Prometheus metrics of the operator's own work. Labels are bounded: policies, brokers, reasons, sources of signals.

Told by the policy loops; served by ``bellwether operator --metrics-port``.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from bellwether.core.runs import Run, RunState
from bellwether.core.signals import Signal
from bellwether.core.statuses import Report
from bellwether.core.transitions import Standing

_POLICY = ("namespace", "policy")
_TURN_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class OperatorMetrics:
    """What the operator says of itself, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._turns = Histogram(
            "bellwether_turn_seconds",
            "Time that one turn took.",
            _POLICY,
            buckets=_TURN_BUCKETS,
            registry=self.registry,
        )
        self._started = Gauge(
            "bellwether_turn_start_timestamp_seconds",
            "When the turn under way began; 0 between turns. A turn that stands still is a stuck loop.",
            _POLICY,
            registry=self.registry,
        )
        self._finished = Gauge(
            "bellwether_turn_last_success_timestamp_seconds",
            "When the last turn ended well.",
            _POLICY,
            registry=self.registry,
        )
        self._errors = Counter(
            "bellwether_errors", "Turns that failed, by kind of error.", (*_POLICY, "kind"), registry=self.registry
        )
        self._leading = Gauge(
            "bellwether_leadership_held",
            "1 while this process holds the Lease of the policy's cluster.",
            _POLICY,
            registry=self.registry,
        )
        self._at_rest = Gauge(
            "bellwether_at_rest", "1 when the last turn asked Kafka for nothing.", _POLICY, registry=self.registry
        )
        self._verdict = Gauge(
            "bellwether_broker_verdict",
            "1 for the verdict that the broker has, 0 for the others.",
            (*_POLICY, "broker", "verdict"),
            registry=self.registry,
        )
        self._leaders = Gauge(
            "bellwether_broker_leaders",
            "Partitions that the broker leads.",
            (*_POLICY, "broker"),
            registry=self.registry,
        )
        self._demoted = Gauge(
            "bellwether_broker_demoted",
            "1 while the broker is kept from leading.",
            (*_POLICY, "broker"),
            registry=self.registry,
        )
        self._held = Gauge(
            "bellwether_moves_held",
            "Partitions whose move is held back, by reason.",
            (*_POLICY, "reason"),
            registry=self.registry,
        )
        self._brokers_held = Gauge(
            "bellwether_brokers_held",
            "Brokers whose demotion or promotion is held back, by reason.",
            (*_POLICY, "reason"),
            registry=self.registry,
        )
        self._out_of_place = Gauge(
            "bellwether_leaders_out_of_place",
            "Partitions led by another broker than their baseline's first.",
            _POLICY,
            registry=self.registry,
        )
        self._entries = Gauge(
            "bellwether_undo_record_entries",
            "Partitions in the undo record, tombstones included.",
            _POLICY,
            registry=self.registry,
        )
        self._age = Gauge(
            "bellwether_signal_age_seconds",
            "Time since the source of the signal was last heard of; -1 for never.",
            (*_POLICY, "broker", "type", "source"),
            registry=self.registry,
        )
        self._reordered = Counter(
            "bellwether_partitions_reordered",
            "Partitions given another replica order.",
            _POLICY,
            registry=self.registry,
        )
        self._elected = Counter(
            "bellwether_leaders_elected", "Leaders moved by preferred election.", _POLICY, registry=self.registry
        )
        self._touched = Counter(
            "bellwether_replica_sets_touched",
            "Replica sets that changed around a reorder of ours.",
            _POLICY,
            registry=self.registry,
        )

        self._run_state = Gauge(
            "bellwether_rebalance_state",
            "1 for the state that the rebalance by load is in, 0 for the others.",
            (*_POLICY, "state"),
            registry=self.registry,
        )
        self._run_partitions = Gauge(
            "bellwether_rebalance_partitions",
            "Partitions of the load plan that were applied, or left out.",
            (*_POLICY, "what"),
            registry=self.registry,
        )
        self._run_load = Gauge(
            "bellwether_rebalance_load_bytes_per_second",
            "Load of the busiest broker, per 100 of capacity: before the load plan, after it, and what none can beat.",
            (*_POLICY, "when"),
            registry=self.registry,
        )

    def turn_begins(self, namespace: str, policy: str, timestamp: float) -> None:
        """A turn starts; ``timestamp`` is Unix time in seconds."""
        self._started.labels(namespace, policy).set(timestamp)

    def turn_ends(self, namespace: str, policy: str) -> None:
        """No turn is under way any more."""
        self._started.labels(namespace, policy).set(0)

    def turn_ended(self, namespace: str, policy: str, seconds: float, report: Report, entries: int) -> None:
        """A turn ended well."""
        labels = (namespace, policy)
        self._turns.labels(*labels).observe(seconds)
        self._finished.labels(*labels).set(report.now.timestamp())
        self._at_rest.labels(*labels).set(report.settled)
        self._out_of_place.labels(*labels).set(report.leaders_out_of_place)
        self._entries.labels(*labels).set(entries)
        self._reordered.labels(*labels).inc(report.deeds.reordered)
        self._elected.labels(*labels).inc(report.deeds.elected)
        self._touched.labels(*labels).inc(len(report.deeds.touched))
        for gauge in (self._verdict, self._leaders, self._demoted, self._held, self._brokers_held):
            gauge.remove_by_labels({"namespace": namespace, "policy": policy})
        for broker in report.brokers:
            name = str(broker.broker)
            self._leaders.labels(*labels, name).set(broker.leaders)
            self._demoted.labels(*labels, name).set(broker.demoted is not None)
            for standing in Standing:
                self._verdict.labels(*labels, name, str(standing)).set(broker.verdict.standing is standing)
        for reason, count in report.held_by_reason.items():
            self._held.labels(*labels, str(reason)).set(count)
        for hold in report.plan.decisions.held:
            self._brokers_held.labels(*labels, str(hold.reason)).inc()

    def turn_failed(self, namespace: str, policy: str, kind: str) -> None:
        """A turn ended with an error of that kind."""
        self._errors.labels(namespace, policy, kind).inc()

    def leading(self, namespace: str, policy: str, held: bool) -> None:
        """Whether this process holds the Lease."""
        self._leading.labels(namespace, policy).set(held)
        if not held:
            told = (self._verdict, self._leaders, self._demoted, self._held, self._brokers_held, self._age)
            for gauge in (*told, self._run_state, self._run_partitions, self._run_load):
                gauge.remove_by_labels({"namespace": namespace, "policy": policy})

    def rebalance(self, namespace: str, policy: str, run: Run | None) -> None:
        """How the rebalance by load stands; None where the policy asks for none."""
        for gauge in (self._run_state, self._run_partitions, self._run_load):
            gauge.remove_by_labels({"namespace": namespace, "policy": policy})
        if run is None:
            return
        for state in RunState:
            self._run_state.labels(namespace, policy, str(state)).set(run.state is state)
        left = sum(run.left.values())
        self._run_partitions.labels(namespace, policy, "applied").set(run.taken_up - left)
        self._run_partitions.labels(namespace, policy, "left").set(left)
        if run.figures is not None:
            figures = run.figures
            for when, load in (("before", figures.before), ("after", figures.after), ("bound", figures.bound)):
                self._run_load.labels(namespace, policy, when).set(load)

    def heard(self, namespace: str, policy: str, signals: Iterable[Signal]) -> None:
        """How old each signal is."""
        self._age.remove_by_labels({"namespace": namespace, "policy": policy})
        for signal in signals:
            age = -1.0 if signal.age_seconds is None else signal.age_seconds
            self._age.labels(namespace, policy, str(signal.broker), str(signal.type), signal.source).set(age)

    def forget(self, namespace: str, policy: str) -> None:
        """Drop everything about a policy that is gone."""
        for metric in vars(self).values():
            if isinstance(metric, Gauge | Counter | Histogram):
                metric.remove_by_labels({"namespace": namespace, "policy": policy})
