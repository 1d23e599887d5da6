"""Token for OAUTHBEARER from a file, read again at least once a minute; something else renews it.

In: a ``kafka_connection.TokenFile``. Out: its token and for how long it is used before the file is read again, or
Unauthenticated with what is wrong with the file. Kubernetes replaces a projected ServiceAccount token when four fifths
of its lifetime are over. Called by ``token_source``.
"""

from __future__ import annotations

from pathlib import Path

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.tokens.token_grant import TOKEN, Grant, claims_of, number
from bellwether.kafka_connection import Hidden, TokenFile
from bellwether.ports.errors import Unauthenticated

LONGEST_SECONDS = 60.0
"""A token is used for at most so long before the file is read again: it may have been replaced early."""

_MOST_BYTES = 64 * 1024


def read(file: TokenFile) -> Grant:
    """The present token. Raises Unauthenticated, which names the file."""
    token = token_of(Path(file.path), file.where)
    ends = number(claims_of(token).get("exp"))
    left = LONGEST_SECONDS if ends is None else ends - SystemClock().now().timestamp()
    if left <= 0:
        raise Unauthenticated(f"{file.where}: its token has expired: check what renews the file, and that clocks agree")
    return Grant(Hidden(token), min(left, LONGEST_SECONDS))


def token_of(path: Path, where: str) -> Hidden:
    """The token in a file, without the line break at its end; ``where`` names the file in errors (Unauthenticated)."""
    try:
        with path.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        token = content.decode().strip()
    except OSError as error:
        raise Unauthenticated(
            f"{where} cannot be read ({error.strerror}): mount the token there, readable by this process"
        ) from None
    except UnicodeDecodeError:
        token = ""
    if len(content) > _MOST_BYTES or not TOKEN.fullmatch(token):
        what = "is empty" if not content.strip() else "holds no bearer token (RFC 6750)"
        raise Unauthenticated(f"{where} {what}: write the token alone into it")
    return Hidden(token)
