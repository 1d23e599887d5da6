"""The rebalance of one policy, from the operator's side: runs a rebalancer while ``spec.rebalance`` asks for one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bellwether.adapters.kubernetes.managed_fields import owner_of
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.rebalance_status import RebalanceStatus
from bellwether.core.settings.rebalance import Approval
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.ports.rebalance import Rebalancer
from bellwether.reconcile import ReconcileResult

APPROVE_ANNOTATION = "bellwether.dev/approve-plan"
"""Annotation that names the digest of the plan that may be applied."""

PolicyRebalancer = Rebalancer[LeadershipPolicy, RebalanceStatus]

MakeRebalancer = Callable[[RebalanceStatus | None, Callable[[], None]], PolicyRebalancer]
"""In: the rebalance status as last reported, and a callback that wakes the policy's controller."""


class PolicyRebalance:
    """See the module. ``status_of`` reads a policy's last ``status.rebalance``."""

    def __init__(
        self,
        make: MakeRebalancer | None,
        status_of: Callable[[LeadershipPolicy], RebalanceStatus | None],
        wake: Callable[[], None],
    ) -> None:
        self._make = make
        self._status_of = status_of
        self._wake = wake
        self._rebalancer: PolicyRebalancer | None = None

    def status(self) -> RebalanceStatus | None:
        """The state of the rebalance; None where the policy has none."""
        return self._rebalancer.status() if self._rebalancer is not None else None

    @property
    def version(self) -> int | None:
        """Changes whenever a reconcile has something new to do or to report."""
        rebalancer = self._rebalancer  # read by the watches' threads, too
        return rebalancer.version if rebalancer is not None else None

    def rebalance_input(self, policy: LeadershipPolicy, body: dict[str, Any]) -> RebalanceInput:
        """What the next reconcile is to do for a rebalance. Raises Transient or Terminal."""
        if policy.spec.rebalance is None:
            self.close()
        elif self._rebalancer is None and self._make is not None:
            # The object may be older than the last status.
            self._rebalancer = self._make(self._status_of(policy), self._wake)
        if self._rebalancer is None:
            return RebalanceInput()
        return replace(self._rebalancer.rebalance_input(), approved_by=_approver(policy, body))

    def on_result(self, policy: LeadershipPolicy, result: ReconcileResult) -> None:
        """What a reconcile came to."""
        if self._rebalancer is not None:
            report = result.report
            self._rebalancer.on_result(policy, report.cluster_id, report.progress, result.snapshot)

    def on_published(self, status: RebalanceStatus | None) -> None:
        """This state of the rebalance is in status."""
        if self._rebalancer is not None and status is not None:
            self._rebalancer.on_published(status)

    def unhealthy_reason(self) -> str | None:
        """That its thread has died, if so."""
        rebalancer = self._rebalancer
        return rebalancer.unhealthy_reason() if rebalancer is not None else None

    def close(self) -> None:
        """Stop planning; the next ``rebalance_input`` starts again."""
        rebalancer, self._rebalancer = self._rebalancer, None
        if rebalancer is not None:
            rebalancer.close()


def _approver(policy: LeadershipPolicy, body: dict[str, Any]) -> str:
    """Who approved the load plan, for the audit trail."""
    if policy.spec.rebalance is not None and policy.spec.rebalance.approval is Approval.AUTOMATIC:
        return "the policy (spec.rebalance.approval)"
    return owner_of(body, "metadata", "annotations", APPROVE_ANNOTATION) or f"annotation {APPROVE_ANNOTATION}"
