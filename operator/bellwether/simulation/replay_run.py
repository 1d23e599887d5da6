"""Run a replay: the real reconcile over a recorded trace, in memory.

In: a trace's instants and the settings to judge by. Out: a ``Timeline``. What was seen then is seen again at the same
moments; what the operator does now happens in memory. A reconcile runs at every instant that brings more than a sign of
life, and when the operator's own rule wants one. Called by ``bellwether replay``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from bellwether.core.model.cluster import Cluster, TopicPartition
from bellwether.core.model.fault_tolerance import FaultTolerance
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Override, Signal
from bellwether.gather import Memory
from bellwether.ports.errors import Transient
from bellwether.recording.recorded_status import flaps_of, verdicts_of
from bellwether.recording.replay_settings import Setting, limits_loads, policy_of
from bellwether.recording.traces.cluster_section import cluster_section, read_cluster
from bellwether.recording.traces.merge_patch import Document, Json
from bellwether.recording.traces.trace_lines import Header, Instant, following
from bellwether.recording.traces.trace_sections import (
    DEMOTED,
    KAFKA,
    OVERRIDES,
    PODS,
    RETURNING,
    aged,
    read_signals,
)
from bellwether.simulation.memory_kafka import MemoryReader
from bellwether.simulation.memory_world import ManualClock, memory_world
from bellwether.simulation.replay_timeline import Timeline
from bellwether.simulation.replayed_cluster import ReplayedCluster
from bellwether.simulation.simulated_operator import SimulatedOperator

_SIGNS_OF_LIFE = frozenset({"heard"})
_NOTHING: Document = {}


@dataclass
class RecordedSignals:
    """``ports.kubernetes.SignalReader``: what was known of signals and overrides at the moment of the clock."""

    clock: ManualClock
    state: Document = field(default_factory=dict)
    _section: Document = field(default_factory=dict)
    _read: tuple[Signal, ...] = ()

    def signals(self) -> tuple[Signal, ...]:
        """Every source's last signal, aged by when its Lease was seen to advance."""
        section = self.state.get("signals", _NOTHING)
        if section is not self._section:  # read again only when it has changed
            self._section, self._read = section, read_signals(section)
        return aged(self._read, self.state.get("heard", _NOTHING), self.clock.monotonic())

    def overrides(self) -> tuple[Override, ...]:
        """What people had asked for, expired ones included."""
        found = OVERRIDES.read(self.state.get("overrides", _NOTHING))
        return tuple(found[broker] for broker in sorted(found))


@dataclass(frozen=True, slots=True)
class RecordedFollowers:
    """``ports.kafka.FaultToleranceReader``: which slow brokers were seen to trail, and nothing else."""

    rows: Document

    def margins(
        self,
        topics: Collection[str],  # noqa: ARG002 - a trace does not have it
        peers: Collection[int],  # noqa: ARG002 - a trace does not have it
        followed: Mapping[int, Mapping[TopicPartition, int]],
    ) -> FaultTolerance:
        """What was recorded of followers."""
        known = {broker: self.rows.get(str(broker), _NOTHING).get("trailing") for broker in followed}
        trailing = frozenset(broker for broker, trails in known.items() if trails is True)
        keeping_up = frozenset(broker for broker, trails in known.items() if trails is False)
        return FaultTolerance(trailing=trailing, keeping_up=keeping_up, problem="a trace does not have it")


class RecordedReader(MemoryReader):
    """Reads the replayed cluster, but not while the recorder could not read the real one."""

    def __init__(self, cluster: ReplayedCluster, recorded: RecordedSignals) -> None:
        super().__init__(cluster)
        self._recorded = recorded

    def read(self) -> Cluster:
        """The current cluster. Raises Transient while no broker answered in the recording."""
        trouble = self._recorded.state.get("away", _NOTHING).get(KAFKA)
        if trouble is not None:
            raise Transient(str(trouble))
        return super().read()


class Replay:
    """One trace under one choice of settings: ``settings`` replace the recorded ones, ``changes`` alter either.

    Without ``plan`` it is only judged and decided: much faster where there are many partitions.
    """

    def __init__(
        self, header: Header, settings: Document | None = None, changes: Iterable[Setting] = (), *, plan: bool = True
    ) -> None:
        self.header = header
        self.timeline = Timeline(plan and header.partitions)
        self.limited_loads = False
        """Whether settings limit brokers by load, which counts for nothing here."""
        self._plan = plan
        self._settings = settings
        self._changes = tuple(changes)
        self._clock = ManualClock(header.started)
        self._signals = RecordedSignals(self._clock)
        self._state: dict[str, Json] = {}
        self._policy: Policy | None = None
        self._cluster: ReplayedCluster | None = None
        self._operator: SimulatedOperator | None = None

    @property
    def reconciles(self) -> int:
        """How many reconciles succeeded."""
        return self._operator.reconciles if self._operator is not None else 0

    def play(self, instants: Iterable[Instant]) -> Timeline:
        """The whole trace. Raises UnreadableTrace, Terminal, InvalidObject."""
        for instant in instants:
            if self._operator is not None:
                self._operator.run(instant.at)
            self._clock.advance(max(0.0, instant.at - self._clock.monotonic()))
            self._meet(instant)
            if self._operator is not None and (set(instant.news) - _SIGNS_OF_LIFE or self._operator.due):
                self._operator.reconcile()
        return self.timeline

    def _meet(self, instant: Instant) -> None:
        self._state = following(self._state, instant.news)
        self._signals.state = self._state
        if "policy" in instant.news or self._policy is None:
            settings = self._settings if self._settings is not None else self._state.get("policy", _NOTHING)
            self.limited_loads |= limits_loads(settings)
            self._policy = policy_of(settings, self.header.policy, self.header.namespace, self._changes).policy()
        if "cluster" in instant.news:
            self._advance_cluster(self._policy)
        self.timeline.recorded(self._clock.now(), instant.news, self._state)
        if self._operator is not None:
            pods = PODS.read(self._state["pods"]) if "pods" in self._state else None
            margins = RecordedFollowers(self._state["followers"]) if "followers" in self._state else None
            self._operator.world = replace(self._operator.world, pods=lambda _: pods, margins=margins)
            self._operator.policy = self._policy

    def _advance_cluster(self, policy: Policy) -> None:
        now = read_cluster(self._state["cluster"])
        if not self._plan:
            now = read_cluster(cluster_section(now, partitions=False))
        if self._cluster is not None:
            self._cluster.advance_to(now)
            return
        self._cluster = ReplayedCluster(now)
        demoted = DEMOTED.read(self._state.get("demoted", _NOTHING))
        returning = RETURNING.read(self._state.get("returning", _NOTHING))
        record = UndoRecord(now.cluster_id, 0, demoted, returning=returning)
        world = memory_world(self._cluster, self._signals, self._clock)
        world = replace(world, clusters=RecordedReader(self._cluster, self._signals))
        said = self._state.get("said", _NOTHING)
        memory = Memory(record, verdicts_of(said), flaps=flaps_of(said))
        self._operator = SimulatedOperator(self._cluster, world, policy, memory, timeline=self.timeline)
