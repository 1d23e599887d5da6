"""Everything that one turn knows, gathered before anything is judged. Nothing later in the turn fetches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bellwether.core.baselines import UndoRecord
from bellwether.core.clusters import Cluster, PartitionKey
from bellwether.core.flapping import Flaps
from bellwether.core.signals import Override, Signal
from bellwether.core.strimzi import Lack, Strimzi


@dataclass(frozen=True, slots=True)
class Refused:
    """An order that Kafka refused for a partition: how often, when last, and in what words."""

    order: tuple[int, ...]
    times: int
    at: datetime
    message: str


@dataclass(frozen=True)
class Snapshot:
    """The facts of one turn: metadata, signals, overrides, the undo record as recovered, flap counters, the time.

    ``strimzi`` is what Strimzi says of the cluster; None where another runs it.
    """

    now: datetime
    cluster: Cluster
    record: UndoRecord
    signals: tuple[Signal, ...] = ()
    overrides: tuple[Override, ...] = ()
    refused: Mapping[PartitionKey, Refused] = field(default_factory=dict)
    flaps: Mapping[int, Flaps] = field(default_factory=dict)
    strimzi: Strimzi | None = None

    @property
    def at_work(self) -> Lack | None:
        """Why promotion, rebalancing and re-assertion wait for whoever runs the cluster, if they do (law 10)."""
        return self.strimzi.at_work if self.strimzi is not None else None

    def override_of(self, broker: int) -> Override | None:
        """The override of a broker that holds now, if any."""
        return next((o for o in self.overrides if o.broker == broker and o.active(self.now)), None)
