"""Start the watches once the CRDs are served, and restart them after the API server has stopped serving them.

In: the API and kopf's registry. Out: kopf runs until the process is asked to end. kopf asks the API once, at its start,
which kinds it serves. The API server calls a definition Established a moment before discovery lists its kind, so
discovery is asked first, by the addresses that kopf asks. Called by ``bellwether operator``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

import kopf
import structlog

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES, KubernetesClient
from bellwether.api.v1alpha1.base_model import GROUP, VERSION
from bellwether.ports.errors import Terminal, Transient

WAIT_SECONDS = 2.0
SETTLE_SECONDS = 3.0
"""After definitions that came late: another API server may list them a moment later."""

REMEDY = "install those of the chart (crds.install), or kubectl apply -f crds/"

log = structlog.get_logger(__name__)


def missing_definitions(api: KubernetesClient) -> list[str]:
    """The names of our definitions whose kinds discovery does not list. Raises Transient or Terminal."""
    served = api.served(GROUP, VERSION)
    return [f"{one.plural}.{GROUP}" for one in (POLICIES, BROKER_HEALTHS) if one.plural not in served]


def await_definitions(api: KubernetesClient, sleep: Callable[[float], None]) -> None:
    """Return once discovery lists both kinds, or where this account may not ask. What is missing is logged once."""
    reported: list[str] = []
    while True:
        try:
            missing = missing_definitions(api)
        except Transient:  # readiness reports it
            sleep(WAIT_SECONDS)
            continue
        except Terminal as error:
            log.warning("definitions_not_checked", error=str(error))
            return
        if not missing:
            break
        if missing != reported:
            log.error("definitions_missing", missing=missing, remedy=REMEDY)
            reported = missing
        sleep(WAIT_SECONDS)
    if reported:
        log.info("definitions_served")
        sleep(SETTLE_SECONDS)


class Watches:
    """kopf, run again and again. ``ended`` is called after each run, when nothing is watched any more."""

    def __init__(
        self,
        api: KubernetesClient,
        registry: kopf.OperatorRegistry,
        namespaces: Sequence[str],
        ended: Callable[[], None],
        sleep: Callable[[float], None],
    ) -> None:
        self._api = api
        self._registry = registry
        self._namespaces = namespaces
        self._ended = ended
        self._sleep = sleep
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def begin_anew(self) -> None:
        """End this run of kopf, and begin another one once both kinds are served. From any thread."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with suppress(RuntimeError):  # that run has ended by itself
                loop.call_soon_threadsafe(stop.set)

    def run(self) -> None:
        """Watch until the process is asked to end by a signal."""
        while True:
            await_definitions(self._api, self._sleep)
            try:
                again = asyncio.run(self._watch())
            finally:
                self._loop = self._stop = None
                self._ended()
            if not again:
                return
            log.warning("watches_restarted")

    async def _watch(self) -> bool:
        """One run of kopf; whether another one is to follow."""
        self._stop = stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        try:
            await kopf.operator(
                registry=self._registry,
                namespaces=list(self._namespaces),
                clusterwide=not self._namespaces,
                standalone=True,
                stop_flag=stop,
            )
        except asyncio.CancelledError:
            return False
        except Exception as error:
            # kopf ends with the error of a watch whose kind is no longer served.
            if not stop.is_set() and not missing_definitions(self._api):
                raise
            log.warning("watches_failed", error=str(error))
            return True
        return stop.is_set()
