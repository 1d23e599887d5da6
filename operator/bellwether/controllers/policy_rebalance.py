"""The rebalance of one policy, from the operator's side: runs a rebalancer while a LeaderRebalance names the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from bellwether.adapters.kubernetes.kept_fields import owner_of
from bellwether.api.v1alpha1.leader_rebalance import APPROVE_ANNOTATION
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus
from bellwether.core.condition import Condition
from bellwether.core.model.loads import LOADS_PENDING, Loads
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.rebalance import Approval
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.ports.errors import BellwetherError
from bellwether.ports.rebalance import Rebalancer
from bellwether.reconcile import ReconcileResult

PolicyRebalancer = Rebalancer[LeadershipPolicy, LeaderRebalanceStatus]

MakeRebalancer = Callable[[LeaderRebalanceStatus, Callable[[], None]], PolicyRebalancer]
"""In: the status of the LeaderRebalance as last reported, and a callback that wakes the policy's controller."""

ListRebalances = Callable[[str], Sequence[Mapping[str, Any]]]
"""The LeaderRebalances of a namespace, as the API has them. Raises Transient or Terminal."""

log = structlog.get_logger(__name__)


class PolicyRebalance:
    """See the module."""

    def __init__(self, make: MakeRebalancer | None, listed: ListRebalances, wake: Callable[[], None]) -> None:
        self._make = make
        self._list = listed
        self._wake = wake
        self._bodies: Sequence[Mapping[str, Any]] | None = None
        self._unread = ""
        self._loads: Loads | None = LOADS_PENDING
        self._rebalancer: PolicyRebalancer | None = None
        self._uid = ""

    def chosen(self, policy: LeadershipPolicy) -> LeadershipPolicy:
        """The policy with its LeaderRebalance.

        While the API does not answer, the objects are those read last, or none: moves away from sick brokers do not
        wait for it.
        """
        try:
            self._bodies, self._unread = self._list(policy.metadata.namespace), ""
        except BellwetherError as error:
            log.warning("rebalances_not_read", error=str(error))
            meanwhile = "none is used" if self._bodies is None else "those that were read last stay in force"
            self._unread = f"LeaderRebalances cannot be read: {error}: {meanwhile}"
        return policy.with_rebalances(self._bodies or ())

    def qualified(self, report: Report, policy: LeadershipPolicy) -> Report:
        """The report with why no LeaderRebalance can be read or used, if so."""
        text = self._unread or _invalid(policy)
        if not text:
            return report
        if policy.spec.limits_loads() and self._rebalancer is None:
            limit = "no broker gets more load" if self._loads is LOADS_PENDING else "the loads known last stay in force"
            text = f"{text}; until then {limit} (maxBytesPerSecond)"
        said = Condition("RebalanceUsable", False, Reason.NO_EVIDENCE, text)
        return replace(report, conditions=(*report.conditions, said))

    def status(self) -> LeaderRebalanceStatus | None:
        """The state of the rebalance; None where the policy has none."""
        return self._rebalancer.status() if self._rebalancer is not None else None

    @property
    def version(self) -> int | None:
        """Changes whenever a reconcile has something new to do or to report."""
        rebalancer = self._rebalancer  # read by the watches' threads, too
        return rebalancer.version if rebalancer is not None else None

    def rebalance_input(self, policy: LeadershipPolicy) -> RebalanceInput:
        """What the next reconcile is to do for a rebalance."""
        used = policy.rebalance
        if self._rebalancer is not None and (used is None or used.metadata.uid != self._uid):
            self._end()
        if used is not None and self._rebalancer is None and self._make is not None:
            self._rebalancer, self._uid = self._make(used.status, self._wake), used.metadata.uid
        if self._rebalancer is None:
            if self._bodies is not None and not policy.rebalances.body:
                self._loads = None  # there is none, so none measures loads
            return RebalanceInput(loads=self._loads if policy.spec.limits_loads() else None)
        given = self._rebalancer.rebalance_input()
        self._loads = given.loads
        return replace(given, approved_by=_approver(policy))

    def on_result(self, policy: LeadershipPolicy, result: ReconcileResult) -> None:
        """What a reconcile came to."""
        if self._rebalancer is not None:
            report = result.report
            self._rebalancer.on_result(policy, report.cluster_id, report.progress, result.snapshot)

    def on_published(self, status: LeaderRebalanceStatus | None) -> None:
        """This state of the rebalance is in status."""
        if self._rebalancer is not None and status is not None:
            self._rebalancer.on_published(status)

    def unhealthy_reason(self) -> str | None:
        """That its thread has died, if so."""
        rebalancer = self._rebalancer
        return rebalancer.unhealthy_reason() if rebalancer is not None else None

    def close(self) -> None:
        """Stop planning; what is read next starts again."""
        self._bodies, self._unread, self._loads = None, "", LOADS_PENDING  # another process may write the status now
        self._end()

    def _end(self) -> None:
        rebalancer, self._rebalancer = self._rebalancer, None
        if rebalancer is not None:
            rebalancer.close()


def _invalid(policy: LeadershipPolicy) -> str:
    """What is wrong with the object that the policy would use if it were valid; empty if nothing is."""
    chosen = policy.rebalances
    return next((why for body, why in chosen.unused.values() if body is chosen.body), "")


def _approver(policy: LeadershipPolicy) -> str:
    """Who approved the load plan, for the audit trail."""
    used = policy.rebalance
    if used is not None and used.spec.approval is Approval.AUTOMATIC:
        return f"LeaderRebalance {used.metadata.name} (spec.approval)"
    body = policy.rebalances.body
    return owner_of(dict(body), "metadata", "annotations", APPROVE_ANNOTATION) or f"annotation {APPROVE_ANNOTATION}"
