"""Load cache: the measured loads that a policy's limit needs, read from the store once per run, outside the reconcile.

In: a policy's settings and how its rebalance stands (``Wish``), its part of the store. Out: the loads that the next
turn is to know, and what is in the way of newer ones. What cannot be read changes nothing: the former loads stand.
Called by the desk (``rebalance_controller``), in its thread and outside of its lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from bellwether.adapters.job_commands import file_name
from bellwether.adapters.store.store_errors import StoreDamaged, StoreError, StoreMissing
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.model.loads import LOADS_PENDING, Loads
from bellwether.core.model.refusals import Refusal
from bellwether.core.reasons import Reason
from bellwether.core.rebalance.lifecycle import RebalanceRun, RunState
from bellwether.core.settings.objective import Objective
from bellwether.core.settings.rebalance import Rebalance
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError

AGAIN_SECONDS = 60.0
"""From a reading that failed to the next."""

AWAITED_SECONDS = 10.0
"""For so long, after they were first wanted, a limit by load waits for them. Then they are unknown."""

FOR = "the loads for spec.demotion.capacity.maxBytesPerSecond"

_UNFINISHED = frozenset({RunState.RUNNING, RunState.FAILED})

log = structlog.get_logger(__name__)


class LoadSource(Protocol):
    """What a store keeps of measured loads, as ``adapters.store.plans.plan_store`` has it."""

    def finished(self, prefix: str) -> tuple[str, ...]:
        """The problems that a plan was made of, by name, the newest first."""
        ...

    def measured(self, name: str, objective: Objective, capacities: Mapping[int, int]) -> Loads:
        """What was measured for one of them."""
        ...


@dataclass(frozen=True)
class LoadQuery:
    """Whose loads are wanted, weighed how. ``latest`` names those of the run that ended last; empty: not known."""

    prefix: str
    uri: str
    objective: Objective
    capacities: Mapping[int, int]
    latest: str = ""

    @classmethod
    def of(cls, policy: LeadershipPolicy, settings: Rebalance, run: RebalanceRun) -> LoadQuery | None:
        """What a policy asks for; None where it limits no broker by load."""
        metadata, rebalance = policy.metadata, policy.spec.rebalance
        if rebalance is None or policy.policy().demotion.capacity.max_load is None:
            return None
        prefix = file_name(metadata.namespace, metadata.name, "")
        latest = f"{prefix}{run.name}" if run.name and run.state not in _UNFINISHED else ""
        return cls(prefix, rebalance.history.uri, settings.objective, settings.capacities, latest)

    @property
    def terms(self) -> object:
        """Everything but the run: another run is news, other terms make even old loads say something else."""
        return self.prefix, self.uri, self.objective, self.capacities


class LoadCache:
    """See the module. One thread reads; ``known`` may be asked from any other."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loads: Loads | None = None
        self._terms: object = None  # by which the loads were weighed
        self._taken = 0
        self._wish: LoadQuery | None = None
        self._tried: float | None = None
        self._wanted_since: float | None = None
        self.trouble: Refusal | None = None
        """Why the newest loads could not be read, if so."""

    def wanted(self, wanted: bool) -> None:
        """Whether the policy asks for loads by now; when it does not any more, they are forgotten at the next step."""
        if not wanted:
            self._wanted_since = None
        elif self._wanted_since is None:
            self._wanted_since = self._clock.monotonic()

    def known(self) -> Loads | None:
        """The loads for a turn: ``AWAITED`` while they are about to be looked for, None where there are none."""
        if self._loads is not None or self._tried is not None:
            return self._loads
        since = self._wanted_since
        return LOADS_PENDING if since is None or self._clock.monotonic() - since < AWAITED_SECONDS else None

    @property
    def shown(self) -> object:
        """What a turn may do or say differently once it has changed."""
        return self._taken, self._tried is not None, self.trouble

    def due(self, query: LoadQuery | None) -> bool:
        """Whether there may be something to read."""
        if query is None:
            self._loads, self._wish, self._tried, self.trouble = None, None, None, None
            return False
        before = self._wish
        if before is None or self._tried is None or query.terms != before.terms:
            return True
        if query.latest and query.latest != before.latest:
            return True
        return self.trouble is not None and self._clock.monotonic() - self._tried >= AGAIN_SECONDS

    def read(self, plans: Callable[[], LoadSource], query: LoadQuery) -> None:
        """Read what is newest; what cannot be read is told by ``trouble``, and leaves what is known."""
        before, trouble = self._wish, ""
        try:
            self._read(plans(), query)
        except BellwetherError as error:
            trouble = str(error)
        except Exception as error:
            log.exception("the loads could not be read in a way that should not be")
            trouble = f"{type(error).__name__}: {error}"
        self.trouble = Refusal(Reason.STORE_UNAVAILABLE, f"{FOR}: {trouble}") if trouble else None
        kept = before.latest if before is not None and not query.latest else query.latest
        self._wish = replace(query, latest=kept)
        self._tried = self._clock.monotonic()

    def _read(self, plans: LoadSource, query: LoadQuery) -> None:
        """The loads of the run that ended last; while there are none by these terms, those of an older one do."""
        amiss: StoreError | None = None
        if query.latest:
            try:
                self._take(plans, query, query.latest)
                return
            except (StoreDamaged, StoreMissing) as error:
                amiss = error
        if self._loads is None or self._terms != query.terms:
            for name in plans.finished(query.prefix):
                try:
                    self._take(plans, query, name)
                    break
                except (StoreDamaged, StoreMissing) as error:
                    amiss = amiss or error
        if amiss is not None:
            raise amiss

    def _take(self, plans: LoadSource, query: LoadQuery, name: str) -> None:
        began = self._clock.monotonic()
        self._loads = plans.measured(name, query.objective, query.capacities)
        self._terms = query.terms
        self._taken += 1
        seconds = round(self._clock.monotonic() - began, 1)
        log.info("read loads", loads=name, partitions=len(self._loads.partitions), seconds=seconds)
