"""Verify presigned AWS URLs (Signature Version 4) with the standard library, independently of the SDK that signs them.

In: the URL and the secret of its access key. Out: the signature that it should have. Checked against the known answer
of AWS' own documentation before it is used to judge tokens.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from urllib.parse import parse_qsl, quote, urlsplit

EMPTY = hashlib.sha256(b"").hexdigest()


def signature(url: str, secret: str, *, added_later: tuple[str, ...] = (), payload: str = EMPTY) -> str:
    """The signature of a presigned GET, of which ``added_later`` and the signature itself are not signed."""
    parts = urlsplit(url)
    asked = parse_qsl(parts.query, keep_blank_values=True)
    fields = dict(asked)
    signed = sorted((quote(k, safe="-_.~"), quote(v, safe="-_.~")) for k, v in asked if k not in added_later)
    query = "&".join(f"{name}={value}" for name, value in signed if name != "X-Amz-Signature")
    canonical = "\n".join(("GET", parts.path or "/", query, f"host:{parts.netloc}", "", "host", payload))
    _, *scope = fields["X-Amz-Credential"].split("/")
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join(("AWS4-HMAC-SHA256", fields["X-Amz-Date"], "/".join(scope), digest))
    key = f"AWS4{secret}".encode()
    for part in scope:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


def opened(token: str) -> tuple[str, dict[str, str]]:
    """The URL in a token of Amazon MSK, and the fields of its query."""
    url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    return url, dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
