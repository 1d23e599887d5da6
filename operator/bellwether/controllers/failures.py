"""Report a failed reconcile by the action that it requires, and return when to retry.

Called by ``policy_controller``. A person reads the reason in the policy's conditions; the log has it in full.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.cluster_connection import PolicyRefused, connection_error_reason
from bellwether.controllers.reporting.status_reporter import StatusReporter
from bellwether.controllers.session import Session
from bellwether.core.reasons import Reason
from bellwether.core.reporting.requeue import Requeue
from bellwether.ports.errors import BellwetherError, Fenced, Terminal, Transient, WrongCluster

log = structlog.get_logger(__name__)


class Failures:
    """Failed reconciles of one policy; ``release`` gives up the Lease."""

    def __init__(
        self,
        who: tuple[str, str],
        session: Session,
        reporter: StatusReporter,
        requeue: Requeue,
        release: Callable[[], None],
    ) -> None:
        self._who = who
        self._session = session
        self._reporter = reporter
        self._requeue = requeue
        self._release = release
        self._reason: Reason | None = None
        self._times = 0

    def succeeded(self) -> None:
        """A reconcile has succeeded."""
        if self._reason is not None:
            log.info("reconcile_recovered", previous_reason=str(self._reason))
            self._reason, self._times = None, 0

    def handle(self, policy: LeadershipPolicy, body: dict[str, Any], error: BellwetherError) -> float:
        """Report an error; returns seconds until the next try."""
        return self._requeue.jitter(self._handle(policy, body, error))

    def _handle(self, policy: LeadershipPolicy, body: dict[str, Any], error: BellwetherError) -> float:
        match error:
            case PolicyRefused():
                return self._refused(policy, body, error.reason, error)
            case Fenced():
                log.warning("leadership_lost", error=str(error))
                self._reporter.metrics.turn_failed(*self._who, "Fenced")
                self._release()
                return 0.0
            case WrongCluster():
                self._release()
                return self._refused(policy, body, Reason.CLUSTER_CHANGED, error)
            case Transient():
                connected = self._session.link is not None
                reason = Reason.NO_ANSWER if connected else Reason.CLUSTER_UNREACHABLE
                return self._refused(policy, body, reason, error)
            case Terminal():
                cause = self._session.reconnect(policy) or error
                return self._refused(policy, body, connection_error_reason(cause), cause)
        raise error

    def defect(self) -> float:
        """A reconcile failed in a way that no error of ours names."""
        log.exception("reconcile_failed_unexpectedly")
        self._reporter.metrics.turn_failed(*self._who, "Defect")
        self._release()
        return self._requeue.jitter(self._requeue.retry_seconds)

    def _refused(self, policy: LeadershipPolicy, body: dict[str, Any], reason: Reason, error: BellwetherError) -> float:
        if reason is Reason.NOT_LEADER:
            return self._requeue.lease_retry_seconds  # the leader writes the status
        log.warning("reconcile_failed", reason=str(reason), error=str(error))
        self._times = self._times + 1 if self._reason is reason else 1
        self._reason = reason
        self._reporter.metrics.turn_failed(*self._who, type(error).__name__)
        if self._session.led_elsewhere(policy):
            return self._requeue.retry_seconds  # an error of a stand-by process is not the policy's
        self._reporter.trouble(body, reason, str(error))
        return self._requeue.retry(reason, self._times)
