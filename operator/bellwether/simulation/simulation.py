"""Simulate faults: what the operator of a policy would do with a cluster in memory.

In: a cluster, a policy, a fault script. Out: the rows of a timeline, and state and leaders of each broker over time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Reading, SignalType
from bellwether.gather import Memory
from bellwether.simulation.fault_script import FaultScript, Stage
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_world import SimulatedSite
from bellwether.simulation.replay_timeline import Row
from bellwether.simulation.simulated_operator import PartitionChange, SimulatedOperator

VANTAGES = ("vantage-1", "vantage-2")
"""Vantages of a policy that names none."""


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds in which a broker's state, demotion and number of leaders were the same."""

    start: int
    end: int
    state: str
    demoted: bool
    leaders: int


@dataclass(frozen=True)
class Simulation:
    """What happened: rows by time, changed partitions, and the spans of each broker."""

    seconds: int
    rows: tuple[Row, ...]
    changes: tuple[PartitionChange, ...]
    brokers: dict[int, tuple[Span, ...]]


def simulate(cluster: MemoryCluster, policy: Policy, script: FaultScript) -> Simulation:
    """Run the script. All brokers pass at the start. Raises ValueError for an event that does not fit the cluster."""
    site = SimulatedSite(cluster, pods={})
    stage = Stage(site, policy.detection.external_reachability.vantages or VANTAGES)
    _all_pass(stage, policy)
    seen: dict[int, list[tuple[int, str, bool, int]]] = {}

    def see(report: Report) -> None:
        second, leaders = int(site.clock.monotonic()), cluster.snapshot().leaders()
        for broker in report.brokers:
            now = str(broker.verdict.state), broker.demoted is not None, leaders.get(broker.broker, 0)
            moments = seen.setdefault(broker.broker, [])
            if moments and moments[-1][0] == second:
                moments.pop()
            if not moments or moments[-1][1:] != now:
                moments.append((second, *now))

    operator = SimulatedOperator(cluster, site.process(), policy, Memory(UndoRecord(cluster.cluster_id)), see=see)
    for second in sorted({0, script.seconds, *script.events}):
        operator.run(second)
        for event in script.events.get(second, ()):
            event.happen(stage)
            operator.timeline.rows.append(Row(site.clock.now(), "event", f"event: {event}"))
        operator.reconcile()
    spans = {broker: _spans(moments, script.seconds) for broker, moments in sorted(seen.items())}
    return Simulation(script.seconds, tuple(operator.timeline.rows), tuple(operator.changes), spans)


def _all_pass(stage: Stage, policy: Policy) -> None:
    for broker in sorted(stage.site.cluster.brokers):
        if policy.detection.external_reachability.enabled:
            stage.site.signals.say(broker, Reading.PASSING, sources=stage.vantages)
        if policy.detection.storage_latency.enabled:
            source = f"disk-{broker}"
            stage.site.signals.say(broker, Reading.PASSING, type=SignalType.STORAGE_LATENCY, sources=[source])


def _spans(moments: list[tuple[int, str, bool, int]], end: int) -> tuple[Span, ...]:
    closed = [*moments, (end, "", False, 0)]
    return tuple(Span(a[0], b[0], *a[1:]) for a, b in pairwise(closed))
