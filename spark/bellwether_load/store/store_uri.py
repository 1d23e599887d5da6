"""Redact a store's URI for display: no user, password or options, any of which may be a secret."""

from __future__ import annotations

import copy
import re
from urllib.parse import parse_qsl, unquote

# Options of pyarrow's file systems that are no secrets; the others may be keys and tokens.
_HARMLESS = {"region", "scheme", "endpoint_override", "allow_bucket_creation", "allow_bucket_deletion", "retry_limit"}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HIDDEN = "***"


class Redacted:
    """A URI that hides possible secrets, and removes them from other messages."""

    def __init__(self, uri: str) -> None:
        self._secrets: tuple[str, ...] = ()
        found = _SCHEME.match(uri)
        self.scheme = found.group(1).lower() if found else ""
        if not self.scheme:
            self._uri = self._shown = uri
            return
        rest, _, query = uri.partition("?")
        head, slashes, tail = rest.partition("//")
        authority, slash, path = tail.partition("/")
        user, _at, host = authority.rpartition("@")
        # abfs://container@account has no secret before the @, but looks the same as a URI that does.
        self._shown = f"{head}{slashes}{host}{slash}{path}"
        secrets = {query, user, *user.split(":", 1)}
        secrets |= {value for key, value in parse_qsl(query, keep_blank_values=True) if key not in _HARMLESS}
        secrets |= {unquote(secret) for secret in secrets}
        self._uri = uri
        # A string of three letters would match everywhere, and is hardly a secret.
        self._secrets = tuple(sorted((secret for secret in secrets if len(secret) > 3), key=len, reverse=True))

    def __str__(self) -> str:
        return self._shown

    def below(self, path: str) -> Redacted:
        """The URI of a path below, which hides the same."""
        lower = copy.copy(self)
        lower._shown = f"{self._shown.rstrip('/')}/{path}"
        return lower

    def clean(self, message: str) -> str:
        """A message without the URI's secrets."""
        message = message.replace(self._uri, self._shown)
        for secret in self._secrets:
            message = message.replace(secret, _HIDDEN)
        return message
