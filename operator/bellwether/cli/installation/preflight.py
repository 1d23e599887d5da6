"""Permission check of ``bellwether operator`` at startup.

In: a client and the namespaces to watch. Out: log lines with each missing permission and the remedy. The operator
continues: no restart is needed after a permission is granted.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.adapters.kubernetes.permissions import operator_lacks
from bellwether.ports.errors import BellwetherError

log = structlog.get_logger(__name__)


def log_missing_permissions(api: KubernetesClient, namespaces: Sequence[str], lease_namespace: str) -> None:
    """Log each missing permission of this account. An unreachable API is handled by the watches."""
    try:
        for missing in operator_lacks(api, namespaces, lease_namespace):
            log.error("permission_missing", permission=str(missing))
    except BellwetherError as error:
        log.warning("permissions_not_checked", error=str(error))
