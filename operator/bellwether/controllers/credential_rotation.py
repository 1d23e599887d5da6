"""Watch the Secrets behind a policy's connection, so that rotated credentials are used without a restart.

In: the policy, and a factory that builds its connection from the current policy and Secrets. Out: a new connection if
they have changed. Called by ``cluster_connection`` before each reconcile, never during one.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from bellwether.adapters.kubernetes.kafka_cluster.strimzi_discovery import StrimziNotShared, StrimziUnavailable
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.condition import Condition
from bellwether.core.reasons import Reason
from bellwether.kafka_connection import Connection
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Terminal, Transient, Unauthenticated, Unauthorized

log = structlog.get_logger(__name__)

CHECK_SECONDS = 10.0
"""Interval of Secret reads while reconciles follow one another; an idle policy reads them at each reconcile."""

CREDENTIALS_CURRENT = "CredentialsCurrent"


class CredentialWatcher:
    """The connection of one policy, as it was last made."""

    def __init__(self, make: Callable[[LeadershipPolicy], Connection], clock: Clock) -> None:
        self._make = make
        self._clock = clock
        self._made: Connection | None = None
        self._look_at = 0.0
        self._problem = ""
        self._why = Reason.CREDENTIALS_UNUSABLE

    def now(self, policy: LeadershipPolicy) -> Connection:
        """A connection from the current settings. Raises Transient or Terminal."""
        self._look_at = self._clock.monotonic() + CHECK_SECONDS
        self._made = self._make(policy)
        self._problem = ""
        return self._made

    def changed(self, policy: LeadershipPolicy) -> Connection | None:
        """Another connection, where something has changed and it is time to look again.

        If the new credentials are unusable, ``condition`` reports it and the former ones stay in use.
        """
        if self._clock.monotonic() < self._look_at:
            return None
        before = self._made
        try:
            after = self.now(policy)
        except Transient:
            return None
        except Terminal as error:
            self._why = connection_error_reason(error)
            if isinstance(error, StrimziNotShared):
                self._look_at = float("-inf")  # no reconcile before it is shared again
                raise
            if self._problem != str(error):
                self._problem = str(error)
                log.warning("credentials_not_updated", error=str(error))
            return None
        if after == before:
            return None
        log.info("kafka_reconnecting", reason="credentials or addresses have changed")
        return after

    @property
    def condition(self) -> Condition | None:
        """Reports that the current Secrets are unusable; None while they are usable."""
        if not self._problem:
            return None
        text = f"the connection uses the earlier credentials, because the new ones cannot be used: {self._problem}"
        return Condition(CREDENTIALS_CURRENT, False, self._why, text)


def connection_error_reason(error: BellwetherError) -> Reason:
    """The reason for the condition: why the policy could not be reconciled."""
    if isinstance(error, StrimziUnavailable):
        return error.reason
    if isinstance(error, Unauthenticated):
        return Reason.CREDENTIALS_UNUSABLE
    return Reason.ACL_MISSING if isinstance(error, Unauthorized) else Reason.CLUSTER_UNREACHABLE
