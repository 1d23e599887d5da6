"""Load cache: the measured loads that a policy's limit needs, read from the store once per run, outside the reconcile.

In: a policy's settings and the state of its rebalance (``LoadQuery``), its part of the store. Out: the loads for the
next reconcile, and what prevents newer ones. A failed read keeps the former loads.
Called by the desk (``rebalance_controller``), in its thread and outside of its lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.model.loads import LOADS_PENDING, Loads
from bellwether.core.model.refusals import Refusal
from bellwether.core.reasons import Reason
from bellwether.core.settings.objective import Objective
from bellwether.core.settings.rebalance import Rebalance
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError
from bellwether.ports.rebalance import RunState
from bellwether_load.controller.job_commands import file_name
from bellwether_load.controller.lifecycle import Run
from bellwether_load.store.store_errors import StoreDamaged, StoreError, StoreMissing

if TYPE_CHECKING:  # Arrow is for policies that rebalance
    from bellwether_load.store.plans.plan_store import FilePlanStore

AGAIN_SECONDS = 60.0
"""From a reading that failed to the next."""

AWAITED_SECONDS = 10.0
"""For so long, after they were first wanted, a limit by load waits for them. Then they are unknown."""

FOR = "the loads for spec.demotion.capacity.maxBytesPerSecond"

_UNFINISHED = frozenset({RunState.RUNNING, RunState.FAILED})

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class LoadQuery:
    """Whose loads are wanted, weighed how. ``latest`` names those of the run that ended last; empty: not known."""

    prefix: str
    store: str
    objective: Objective
    capacities: Mapping[int, int]
    latest: str = ""

    @classmethod
    def of(cls, policy: LeadershipPolicy, settings: Rebalance, run: Run) -> LoadQuery | None:
        """What a policy asks for; None where it limits no broker by load."""
        metadata, rebalance = policy.metadata, policy.rebalance
        if rebalance is None or policy.policy().demotion.capacity.max_load is None:
            return None
        prefix = file_name(metadata.namespace, metadata.name, "")
        latest = f"{prefix}{run.run}" if run.run and run.state not in _UNFINISHED else ""
        return cls(prefix, rebalance.spec.store, settings.objective, settings.capacities, latest)


class LoadCache:
    """See the module. One thread reads; ``known`` may be asked from any other."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loads: Loads | None = None
        self._taken_for: LoadQuery | None = None
        self._query: LoadQuery | None = None
        self._tried = 0.0
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
        """The loads for a reconcile: ``AWAITED`` before the first read, None where there are none."""
        if self._query is not None:
            return self._loads
        since = self._wanted_since
        return LOADS_PENDING if since is None or self._clock.monotonic() - since < AWAITED_SECONDS else None

    @property
    def shown(self) -> object:
        """What changes the result of a reconcile when it changes."""
        return self._taken_for, self._query is not None, self.trouble

    def refresh(self, plans: Callable[[], FilePlanStore], query: LoadQuery | None) -> bool:
        """Read the newest loads, if these may be others than those that are known; returns whether it did.

        A failure is reported by ``trouble``, keeps the former loads, and is tried again later.
        """
        if query is None:
            self._loads = self._taken_for = self._query = self.trouble = None
            return False
        if self._query is not None and not query.latest:  # a run is under way: those of the one before
            query = replace(query, latest=self._query.latest)
        now, trouble = self._clock.monotonic(), ""
        if query == self._query and (self.trouble is None or now - self._tried < AGAIN_SECONDS):
            return False
        try:
            self._read(plans(), query)
        except BellwetherError as error:
            trouble = str(error)
        except Exception as error:
            log.exception("load_read_failed_unexpectedly")
            trouble = f"{type(error).__name__}: {error}"
        self.trouble = Refusal(Reason.STORE_UNAVAILABLE, f"{FOR}: {trouble}") if trouble else None
        self._query, self._tried = query, self._clock.monotonic()
        return True

    def _read(self, plans: FilePlanStore, query: LoadQuery) -> None:
        """The loads of the run that ended last; while there are none by these terms, those of an older one do."""
        failure: StoreError | None = None
        for name in self._candidates(plans, query):
            try:
                self._loads = plans.measured(name, query.objective, query.capacities)
            except (StoreDamaged, StoreMissing) as error:
                failure = failure or error
                continue
            self._taken_for = replace(query, latest=name)
            log.info("loads_read", loads=name, partitions=len(self._loads.partitions))
            break
        if failure is not None:
            raise failure

    def _candidates(self, plans: FilePlanStore, query: LoadQuery) -> Iterator[str]:
        if query.latest:
            yield query.latest
        known = self._taken_for
        if known is None or replace(known, latest=query.latest) != query:
            yield from (name for name in plans.finished(query.prefix) if name != query.latest)
