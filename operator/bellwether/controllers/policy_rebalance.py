"""The rebalance of one policy, from the operator's side: runs a rebalancer while a LeaderRebalance names the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from bellwether.adapters.kubernetes.managed_fields import owner_of
from bellwether.api.v1alpha1.leader_rebalance import APPROVE_ANNOTATION
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus
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
        self._rebalancer: PolicyRebalancer | None = None
        self._uid = ""

    def chosen(self, policy: LeadershipPolicy) -> LeadershipPolicy:
        """The policy with its LeaderRebalance. Raises Transient or Terminal where none was ever read.

        While the API does not answer, the objects are those read last: moves away from sick brokers do not wait for it.
        """
        try:
            self._bodies = self._list(policy.metadata.namespace)
        except BellwetherError as error:
            if self._bodies is None:
                raise
            log.warning("rebalances_not_read", error=str(error))
        return policy.with_rebalances(self._bodies)

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
            return RebalanceInput()
        return replace(self._rebalancer.rebalance_input(), approved_by=_approver(policy))

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
        self._bodies = None  # another process may write the status now
        self._end()

    def _end(self) -> None:
        rebalancer, self._rebalancer = self._rebalancer, None
        if rebalancer is not None:
            rebalancer.close()


def _approver(policy: LeadershipPolicy) -> str:
    """Who approved the load plan, for the audit trail."""
    used = policy.rebalance
    if used is not None and used.spec.approval is Approval.AUTOMATIC:
        return f"LeaderRebalance {used.metadata.name} (spec.approval)"
    body = policy.rebalances.body
    return owner_of(dict(body), "metadata", "annotations", APPROVE_ANNOTATION) or f"annotation {APPROVE_ANNOTATION}"
