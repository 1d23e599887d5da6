"""TLS verification of the Kubernetes API server's certificate: chain, dates and names, as kubectl does.

Since Python 3.13 the standard library also requires every extension of RFC 5280 (``VERIFY_X509_STRICT``). The CAs of
managed clusters often lack some, such as the authority key identifier, and the operator would not start there. In: a
context, or a client. Out: the same without that requirement. Called by ``api_client`` and by the login of the watches.
"""

from __future__ import annotations

import ssl
from typing import Any

from urllib3.util.ssl_ import create_urllib3_context


def as_kubectl(context: ssl.SSLContext) -> ssl.SSLContext:
    """The context without the strict check of extensions; everything else is still required."""
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def verify_as_kubectl(pool_settings: dict[str, Any]) -> None:
    """Use such a context in a urllib3 pool manager, which loads CAs and certificates into it."""
    pool_settings["ssl_context"] = as_kubectl(create_urllib3_context())
