"""Forecast what the operator would do with a policy from one moment on, if the signals stay as they are.

In: what an operator knows at that moment, and a policy. Out: demotions, promotions and moves with their time. The real
reconcile runs on a copy of the cluster in memory: nothing is written, and Kafka is not asked to move anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.cluster import Cluster
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Override, Signal
from bellwether.gather import Memory
from bellwether.ports.kubernetes import UnchangingSignals
from bellwether.ports.world import World
from bellwether.simulation.memory_world import ManualClock, memory_world
from bellwether.simulation.replay_timeline import Row
from bellwether.simulation.replayed_cluster import ReplayedCluster
from bellwether.simulation.simulated_operator import PartitionChange, SimulatedOperator


@dataclass(frozen=True)
class Situation:
    """What an operator knows at one moment. Of ``world`` it is asked only for settings, log directories, margins."""

    now: datetime
    cluster: Cluster
    memory: Memory
    signals: tuple[Signal, ...]
    overrides: tuple[Override, ...]
    world: World
    pods: Mapping[int, Pod] | None = None


@dataclass(frozen=True)
class Forecast:
    """What would happen: the rows of a timeline, each partition that changes, and the cluster at the end."""

    rows: tuple[Row, ...]
    changes: tuple[PartitionChange, ...]
    cluster: Cluster
    demoted: frozenset[int]

    @property
    def moved(self) -> int:
        """Number of leaders that move."""
        return sum(change.moved for change in self.changes)


def forecast(situation: Situation, policy: Policy, seconds: float) -> Forecast:
    """What happens in that time. Raises Transient if no broker is alive."""
    operator = _operator(situation, policy, ManualClock(situation.now))
    operator.run(seconds)
    if operator.due:
        operator.reconcile()
    if operator.report is None:
        raise NoReport("no broker of the cluster is alive: no forecast can be made")
    return Forecast(
        tuple(operator.timeline.rows),
        tuple(operator.changes),
        operator.cluster.snapshot(),
        frozenset(operator.memory.record.demoted),
    )


class NoReport(ValueError):
    """No reconcile could be made."""


def _operator(situation: Situation, policy: Policy, clock: ManualClock) -> SimulatedOperator:
    cluster, memory = ReplayedCluster(situation.cluster), situation.memory
    world = memory_world(
        cluster,
        UnchangingSignals(situation.signals, situation.overrides),
        clock,
        strimzi=situation.world.strimzi,
        configs=situation.world.configs,
        log_dirs=situation.world.log_dirs,
        margins=situation.world.margins,
        pods=None if situation.pods is None else lambda _: situation.pods,
    )
    memory = replace(memory, verdicts={broker: _noticed(verdict) for broker, verdict in memory.verdicts.items()})
    return SimulatedOperator(cluster, world, policy, memory)


def _noticed(verdict: Verdict) -> Verdict:
    """A status does not say when harm was noticed first: at the latest when the broker became Sick or Suspect."""
    ailing = verdict.state in (HealthState.SICK, HealthState.SUSPECT)
    return replace(verdict, noticed=verdict.since) if ailing and verdict.noticed is None else verdict
