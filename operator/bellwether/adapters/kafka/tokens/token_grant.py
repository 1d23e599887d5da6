"""A token for OAUTHBEARER and its lifetime: allowed characters (RFC 6750), claims of a JSON Web Token (RFC 7519).

For ``token_source`` and what it fetches tokens with.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any

from bellwether.kafka_connection import Hidden

TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


@dataclass(frozen=True, slots=True)
class Grant:
    """A token (``repr`` hides it) and how many seconds it is good for from when it was asked for."""

    token: Hidden
    seconds: float


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a JSON Web Token, unverified; empty for any other token."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        return json_object(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}


def json_object(text: bytes) -> dict[str, Any]:
    """The JSON object in a text; empty for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def number(value: object) -> float | None:
    """A finite number of JSON; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e15 else None
