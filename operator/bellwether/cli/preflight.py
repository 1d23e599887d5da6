"""What ``bellwether operator`` makes sure of before it watches: the kinds that it works on, the rights that it needs.

In: a client and the namespaces to watch. Out: log lines that name what is missing and the remedy. Nothing ends the
operator: whoever grants a right, or installs the definitions, need not restart it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from bellwether.adapters.kubernetes.client import BROKER_HEALTHS, POLICIES, KubernetesClient, NotFound
from bellwether.adapters.kubernetes.permissions import operator_lacks
from bellwether.ports import BellwetherError

log = structlog.get_logger(__name__)

WAIT_SECONDS = 5.0


def tell_missing_permissions(api: KubernetesClient, namespaces: Sequence[str], lease_namespace: str) -> None:
    """Log each permission that this account lacks. An API that does not answer is the watches' matter."""
    try:
        for missing in operator_lacks(api, namespaces, lease_namespace):
            log.error("a permission is missing", permission=str(missing))
    except BellwetherError as error:
        log.warning("permissions were not checked", why=str(error))


def await_definitions(api: KubernetesClient, namespaces: Sequence[str], sleep: Callable[[float], None]) -> None:
    """Return once both kinds are served in the first namespace; at once where all namespaces are watched.

    Who watches the whole cluster hears of definitions that come later. Who may look into some namespaces only does not,
    as definitions belong to none.
    """
    said = False
    for namespace in namespaces[:1]:
        while not _served(api, namespace):
            if not said:
                log.error("waiting for the custom resource definitions: install those of the chart, or crds/")
                said = True
            sleep(WAIT_SECONDS)


def _served(api: KubernetesClient, namespace: str) -> bool:
    try:
        for resource in (POLICIES, BROKER_HEALTHS):
            api.list(resource, namespace)
    except NotFound:
        return False
    except BellwetherError:
        return True  # away, or forbidden: the watches tell
    return True
