"""TLS verification of the Kubernetes API server's certificate: chain, dates and names, as kubectl does.

From Python 3.13 on the standard library asks for more: each certificate must have every extension that RFC 5280 wants
(``VERIFY_X509_STRICT``). The authorities that managed clusters make for themselves often lack some, such as the
authority key identifier, and an operator that asks for them does not start there. In: a context, or a client. Out: the
same, without that one demand. Called by ``api_client`` and by the watches' login.
"""

from __future__ import annotations

import ssl
from typing import Any

from urllib3.util.ssl_ import create_urllib3_context


def as_kubectl(context: ssl.SSLContext) -> ssl.SSLContext:
    """The context, no longer strict about extensions; what it requires else stays required."""
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def verify_as_kubectl(pool_settings: dict[str, Any]) -> None:
    """Let a urllib3 pool manager's connections use such a context; authorities and certificates are loaded into it."""
    pool_settings["ssl_context"] = as_kubectl(create_urllib3_context())
