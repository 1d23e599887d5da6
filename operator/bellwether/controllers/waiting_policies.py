"""Thread that starts or reports policies whose place in the quota of their namespace has changed.

Called by ``policy_manager``, whose handlers of watch events must not wait for the API. Objects of waiting policies are
not kept in memory: they are read again when they are needed.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import structlog

from bellwether.jitter import jittered
from bellwether.ports.errors import BellwetherError, Terminal

RETRY_SECONDS = 2.0

Named = tuple[str, str]
log = structlog.get_logger(__name__)


class WaitingPolicies(threading.Thread):
    """Calls ``settle`` for each policy, on its own thread; again after a while if it returns False or fails."""

    def __init__(self, settle: Callable[[Named], bool]) -> None:
        super().__init__(name="waiting-policies", daemon=True)
        self._settle = settle
        self._queue: queue.SimpleQueue[Named] = queue.SimpleQueue()
        self._pending: set[Named] = set()
        self._lock = threading.Lock()

    def add(self, key: Named) -> None:
        """The place of a policy has changed."""
        with self._lock:
            if key in self._pending:
                return
            self._pending.add(key)
        self._queue.put(key)

    def problems(self) -> list[str]:
        """That the thread has died."""
        return [] if self.ident is None or self.is_alive() else ["the thread of the waiting policies has died"]

    def run(self) -> None:
        """Serve until the process ends."""
        while True:
            self.serve(self._queue.get())

    def serve(self, key: Named) -> None:
        """Settle one policy."""
        with self._lock:
            self._pending.discard(key)
        try:
            done = self._settle(key)
        except Terminal as error:
            log.warning("policy_not_settled", policy="/".join(key), error=str(error))
            return
        except BellwetherError as error:
            log.warning("policy_not_settled", policy="/".join(key), error=str(error))
            done = False
        except Exception:
            log.exception("policy_not_settled_unexpectedly", policy="/".join(key))
            return
        if not done:
            retry = threading.Timer(jittered(RETRY_SECONDS), self.add, [key])
            retry.daemon = True
            retry.start()
