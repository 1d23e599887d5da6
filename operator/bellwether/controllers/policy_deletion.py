"""Policy deletion: restore baselines where possible, export the rest, then release the object, within a time limit.

Called by the policy controller in place of ordinary reconciles once its object is being deleted, or Bellwether is being
uninstalled and the object stays. Healthy brokers get their leaders back; sick ones stay demoted, and their baselines
are exported. With Kafka gone, or the time over, everything is exported and the deletion ends all the same; while orders
may arrive late only the policy knows to undo them, so it stays for an hour at most. The annotation
``bellwether.dev/abandon: "true"`` ends it at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import structlog

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.cluster_connection import PolicyRefused
from bellwether.controllers.policy_finalizer import ABANDON, FINALIZER, PolicyFinalizer
from bellwether.core.demotion.decisions import DecisionFunction, decide_on_deletion
from bellwether.core.model.undo_record import EntryState, UndoRecord
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import DeletionPolicy, Mode, Policy
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient

log = structlog.get_logger(__name__)

DONE = -1.0
RETRY_SECONDS = 2.0
DEFAULT_TIMEOUT_SECONDS = 120

LATE_ORDERS = timedelta(hours=1)
"""How long a policy stays for orders that may arrive late (invariant 7)."""

UNINSTALL = "bellwether.dev/uninstall"

STAYS_AWAY = timedelta(seconds=300)
"""How long the operator stays idle after the end, so that nothing is displaced again before it stops."""

_VALUE = re.compile(r"(Restore|Export) until (\S+)")


@dataclass(frozen=True, slots=True)
class UninstallRequest:
    """Whether orders are to be restored, else only exported; and until when restoring may take."""

    restore: bool
    until: datetime

    def __str__(self) -> str:
        action = "Restore" if self.restore else "Export"
        return f"{action} until {self.until.astimezone(UTC).replace(microsecond=0).isoformat().replace('+00:00', 'Z')}"

    @property
    def ends(self) -> datetime:
        """From when on the operator that is still there goes on as before."""
        return self.until + STAYS_AWAY


def requested_uninstall(body: dict[str, Any], now: datetime) -> UninstallRequest | None:
    """What the policy's object asks for at ``now``; None where it asks for nothing, or for nothing that is readable."""
    annotations = body["metadata"].get("annotations") or {}
    found = _VALUE.fullmatch(str(annotations.get(UNINSTALL, "")).strip())
    if found is None:
        return None
    try:
        until = datetime.fromisoformat(found.group(2))
    except ValueError:
        return None
    if until.tzinfo is None:
        return None
    asked = UninstallRequest(found.group(1) == "Restore", until)
    return asked if now < asked.ends else None


class Reconciler(Protocol):
    """What a parting needs of the policy's controller."""

    @property
    def record(self) -> UndoRecord | None:
        """The undo record as far as this process knows it."""

    def ensure_connected(self, policy: LeadershipPolicy) -> None:
        """Connect and hold the Lease, or raise."""

    def reconcile(self, policy: LeadershipPolicy, decide: DecisionFunction, rebalance_input: RebalanceInput) -> Report:
        """One reconcile with that way to decide, on that occasion."""


@dataclass(frozen=True)
class PolicyDeletion:
    """One policy that is being deleted, or that ``asked`` takes out of our hands for a while."""

    body: dict[str, Any]
    finalizer: PolicyFinalizer
    clock: Clock
    asked: UninstallRequest | None = None
    withdraw: Callable[[], None] = lambda: None

    @classmethod
    def of(
        cls,
        body: dict[str, Any],
        finalizer: PolicyFinalizer,
        clock: Clock,
        withdraw: Callable[[], None] = lambda: None,
    ) -> PolicyDeletion | None:
        """The deletion of a policy's object; None unless it is being deleted or Bellwether is being uninstalled.

        ``withdraw`` is called before the object is released: the Kafka cluster is free for another installation.
        """
        if body["metadata"].get("deletionTimestamp"):
            return cls(body, finalizer, clock, None, withdraw)
        asked = requested_uninstall(body, clock.now())
        return cls(body, finalizer, clock, asked, withdraw) if asked is not None else None

    @property
    def over(self) -> bool:
        """Whether nothing of the policy is in our hands any more."""
        return FINALIZER not in (self.body["metadata"].get("finalizers") or [])

    @property
    def occasion(self) -> str:
        """The cause of these reconciles in the audit log."""
        return "the policy is being deleted" if self.asked is None else "Bellwether is being uninstalled"

    def rest(self) -> float:
        """Seconds to wait after the end: ``DONE`` when the policy is gone."""
        if self.asked is None:
            return DONE
        return max(RETRY_SECONDS, (self.asked.ends - self.clock.now()).total_seconds())

    def step(self, controller: Reconciler, policy: LeadershipPolicy) -> float:
        """One reconcile of the deletion; returns the seconds until the next, ``DONE`` when the policy is gone."""
        why = self._reason_to_leave_as_is(policy.policy())
        if why is not None:
            return self.finish(why)
        try:
            controller.ensure_connected(policy)
            report = controller.reconcile(policy, decide_on_deletion, RebalanceInput(occasion=self.occasion))
        except PolicyRefused as error:
            if error.reason is Reason.NOT_LEADER:
                return RETRY_SECONDS  # the process that holds the Lease does it
            if error.reason in (Reason.CLUSTER_CLAIMED, Reason.CLUSTER_CHANGED) or self._overdue():
                return self.finish(str(error))
            log.warning("restoration_failed", error=str(error))
            return RETRY_SECONDS
        except (Transient, Terminal) as error:
            if self._overdue() and not self._stays_for(controller.record):
                return self.finish(f"the time for restoring is over: {error}")
            log.warning("restoration_failed", error=str(error))
            return RETRY_SECONDS
        record = controller.record
        if record is None or report.result.changed:
            return 0.0
        entries = record.entries.values()
        waiting = any(e.state is EntryState.RESTORED or not _kept(e.baseline, record.demoted) for e in entries)
        if record.empty:
            return self.finish(None)
        late = record.has_outstanding
        if not waiting and not late and report.plan.empty:
            return self.finish(f"brokers {sorted(record.demoted)} are still sick")
        if self._overdue() and not self._stays_for(record):
            return self.finish("orders may arrive late" if late else "the time for restoring is over")
        return RETRY_SECONDS

    def finish(self, left_as_is: str | None) -> float:
        """End holds, export what is left, remove the record and let the policy go."""
        try:
            self.finalizer.remove_quarantine_orders(self.body)
            exported = self.finalizer.close_record(self.body, lose=self._abandoned())
            if exported is not None:
                log.warning("orders_not_restored", reason=left_as_is, exported_to=exported)
                text = f"{self.occasion}: displaced orders were left as they are ({left_as_is}), exported to {exported}"
                self.finalizer.note(self.body, self.clock, text)
            else:
                self.finalizer.note_settled(self.body, self.clock)
            self.withdraw()
            self.finalizer.release(self.body)
        except (Transient, Terminal) as error:
            log.warning("finalizer_not_removed", error=str(error))
            return RETRY_SECONDS
        # A policy that stays is checked again once the watch has delivered the removal of our finalizer.
        return DONE if self.asked is None else RETRY_SECONDS

    def _abandoned(self) -> bool:
        annotations = self.body["metadata"].get("annotations") or {}
        return bool(annotations.get(ABANDON) == "true")

    def _reason_to_leave_as_is(self, policy: Policy) -> str | None:
        """Why nothing is restored at all, if there is a reason."""
        if self._abandoned():
            return f"the annotation {ABANDON} asks for it"
        if self.asked is not None and not self.asked.restore:
            return f"the annotation {UNINSTALL} asks for an export"
        if policy.deletion_policy is DeletionPolicy.ABANDON:
            return "spec.deletionPolicy is Abandon"
        if policy.mode is Mode.OBSERVE:
            return "spec.mode is Observe"
        if policy.suspend:
            return "the policy is suspended"
        return None

    def _stays_for(self, record: UndoRecord | None) -> bool:
        """Whether the policy stays because orders of its record may arrive late."""
        late = record is not None and record.has_outstanding and self.asked is None
        return late and not self._overdue(LATE_ORDERS)

    def _overdue(self, limit: timedelta | None = None) -> bool:
        if self.asked is not None:
            return self.clock.now() > self.asked.until
        stated = int((self.body.get("spec") or {}).get("deletionTimeoutSeconds", DEFAULT_TIMEOUT_SECONDS))
        since = datetime.fromisoformat(str(self.body["metadata"]["deletionTimestamp"]))
        return self.clock.now() - since > (limit or timedelta(seconds=stated))


def _kept(baseline: tuple[int, ...], demoted: Collection[int]) -> bool:
    return any(broker in demoted for broker in baseline)
