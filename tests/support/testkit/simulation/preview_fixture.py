"""Let commands that plan as the operator does meet the simulated cluster of an operator in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.planning import policy_inputs
from bellwether.ports.clock import Clock
from bellwether.ports.kubernetes import NothingShared, SignalReader
from bellwether.ports.world import World
from testkit.simulation.operator_fixture import MemoryOperator


def lead_to_cluster_of(monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator) -> None:
    """Commands read the operator's API and its Kafka cluster, at its time."""

    def world_of(_policy: LeadershipPolicy, _secrets: object, signals: SignalReader, clock: Clock) -> World:
        process = operator.site.process()
        records = lease = NothingShared()
        world = World(process.clusters, process.leaders, records, lease, signals, clock, configs=process.configs)
        return replace(world, margins=process.margins)

    operator.api.serve_commands(monkeypatch)
    monkeypatch.setattr(policy_inputs, "world_of", world_of)
    monkeypatch.setattr(policy_inputs, "SystemClock", lambda: operator.site.clock)
