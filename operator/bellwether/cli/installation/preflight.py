"""The permissions of ``bellwether operator``, checked before it watches.

In: a client and the namespaces to watch. Out: log lines that name what is missing and the remedy. Nothing ends the
operator: after a permission was granted it need not be restarted.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.adapters.kubernetes.permissions import operator_lacks
from bellwether.ports.errors import BellwetherError

log = structlog.get_logger(__name__)


def tell_missing_permissions(api: KubernetesClient, namespaces: Sequence[str], lease_namespace: str) -> None:
    """Log each permission that this account lacks. An API that does not answer is the watches' matter."""
    try:
        for missing in operator_lacks(api, namespaces, lease_namespace):
            log.error("a permission is missing", permission=str(missing))
    except BellwetherError as error:
        log.warning("permissions were not checked", why=str(error))
