"""The seam to the load side, the package that plans leaders by measured load and is found by an entry point.

In: a snapshot of the problem where one is wanted, and the progress of waves. Out: approved orders. The operator applies
these in waves (``core.waves``); of samples, stores, plans and their proofs it knows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from bellwether.core.detection.context import Context
from bellwether.core.doctor.risks import LogEndSample
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.undo_record import DemotedBroker
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.core.waves.rebalance_waves import WaveResult
from bellwether.ports.errors import Terminal

GROUP = "bellwether.load"
"""Group of the entry point; its name is ``load``."""


class RunState(StrEnum):
    """State of a rebalance, as it is reported."""

    IDLE = "Idle"
    RUNNING = "Running"
    PROPOSED = "Proposed"
    APPROVED = "Approved"
    APPLYING = "Applying"
    DONE = "Done"
    FAILED = "Failed"
    STALE = "Stale"
    SUPERSEDED = "Superseded"


@dataclass(frozen=True)
class ProblemSnapshot:
    """What one reconcile knows, for a rebalance problem; ``demoted`` are its decisions, not in the undo record yet.

    It holds the whole cluster: use it, and do not keep it.
    """

    context: Context
    demoted: Mapping[int, DemotedBroker]


PolicyT_contra = TypeVar("PolicyT_contra", contravariant=True)
StatusT = TypeVar("StatusT")


class Rebalancer(Protocol[PolicyT_contra, StatusT]):
    """The rebalance of one policy; it works in a thread of its own, and no call waits for it."""

    @property
    def version(self) -> int:
        """Changes whenever a reconcile has something new to do or to report."""

    def status(self) -> StatusT:
        """Its state, to be reported."""

    def rebalance_input(self) -> RebalanceInput:
        """What the next reconcile is to do."""

    def on_result(
        self, policy: PolicyT_contra, cluster_id: str, progress: WaveResult | None, snapshot: ProblemSnapshot | None
    ) -> None:
        """What a reconcile came to; a snapshot if it was wanted."""

    def on_published(self, status: StatusT) -> None:
        """That state was reported: what must be on record first may go on."""

    def unhealthy_reason(self) -> str | None:
        """What only a restart cures, if anything."""

    def close(self) -> None:
        """End; what runs elsewhere goes on, and is found again."""


class SampleStore(Protocol):
    """A store of samples."""

    @property
    def printable(self) -> str:
        """Its URI without what may be a secret."""

    def last_samples(self, cluster_id: str, wanted: Collection[PartitionKey]) -> Mapping[PartitionKey, LogEndSample]:
        """The last sample of each of these partitions that has one. Raises Transient or Terminal."""


class LoadSide(Protocol):
    """What the entry point names, made of the operator's ``--load-config``."""

    def rebalancers(self, api: Any, clock: Any) -> Callable[[Any, Callable[[], None]], Rebalancer[Any, Any]]:
        """How the operator gets a policy's rebalancer: of the status last reported, and what wakes its controller."""

    def samples(self, store: str) -> SampleStore:
        """The samples in a store. Raises Terminal or ModuleNotFoundError, which names the extra that is missing."""


def load_side(load_config: Path | None = None) -> LoadSide:
    """The installed load side, by a file with its stores and job profiles.

    Raises Terminal where none is installed, or the file is invalid.
    """
    for entry in entry_points(group=GROUP):
        return cast("LoadSide", entry.load()(load_config))
    raise Terminal(f"no package provides the entry point {GROUP}: install bellwether-kafka with the extra load")
