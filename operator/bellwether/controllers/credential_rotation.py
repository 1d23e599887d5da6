"""Watch the Secrets behind a policy's connection, so that rotated credentials are used without a restart.

In: the policy, and a way to make its connection of what it and its Secrets say now. Out: another connection where that
has changed. Called by ``cluster_connection`` before each turn; nothing is followed in the middle of one.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from bellwether.adapters.kubernetes.kafka_cluster.strimzi_discovery import StrimziUnavailable
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.model.condition import Condition
from bellwether.core.reasons import Reason
from bellwether.kafka_connection import Connection
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Terminal, Transient, Unauthenticated, Unauthorized

log = structlog.get_logger(__name__)

CHECK_SECONDS = 10.0
"""How often Secrets are read while turns follow one another; an idle policy's are read at each of its turns."""

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
        """A connection of what is said now. Raises Transient or Terminal."""
        self._look_at = self._clock.monotonic() + CHECK_SECONDS
        self._made = self._make(policy)
        self._problem = ""
        return self._made

    def changed(self, policy: LeadershipPolicy) -> Connection | None:
        """Another connection, where something has changed and it is time to look again.

        What cannot be used is said (``condition``), and what was used before goes on being used: it may still do.
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
            if self._why is Reason.STRIMZI_NOT_SHARED:
                self._look_at = float("-inf")  # no turn is taken before it is lent again
                raise
            if self._problem != str(error):
                self._problem = str(error)
                log.warning("going on with former credentials", why=str(error))
            return None
        if after == before:
            return None
        log.info("connecting anew: credentials or addresses have changed")
        return after

    @property
    def condition(self) -> Condition | None:
        """That what the policy's Secrets say now cannot be used; None while it can."""
        if not self._problem:
            return None
        text = f"connected with what was read before, as this cannot be used: {self._problem}"
        return Condition(CREDENTIALS_CURRENT, False, self._why, text)


def connection_error_reason(error: BellwetherError) -> Reason:
    """Why no turn could be made, in the word that the condition gets."""
    if isinstance(error, StrimziUnavailable):
        return error.reason
    if isinstance(error, Unauthenticated):
        return Reason.CREDENTIALS_UNUSABLE
    return Reason.ACL_MISSING if isinstance(error, Unauthorized) else Reason.CLUSTER_UNREACHABLE
