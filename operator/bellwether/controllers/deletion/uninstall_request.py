"""Uninstall request: an annotation with an expiry that asks to release all leaders while the policies stay.

In: a policy's annotations. Out: what is asked for, while it is. ``bellwether uninstall`` writes it, the policy's loop
does it. It expires, so an installation that stays or returns continues as without the request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

UNINSTALL = "bellwether.dev/uninstall"

STAYS_AWAY = timedelta(seconds=300)
"""How long the operator stays idle after the end, so that nothing is displaced again before it stops."""

_VALUE = re.compile(r"(Restore|Export) until (\S+)")


@dataclass(frozen=True, slots=True)
class UninstallRequest:
    """Whether orders are to be restored, else only exported; and until when restoring may take."""

    restore: bool
    until: datetime

    def __str__(self) -> str:
        action = "Restore" if self.restore else "Export"
        return f"{action} until {self.until.astimezone(UTC).replace(microsecond=0).isoformat().replace('+00:00', 'Z')}"

    @property
    def ends(self) -> datetime:
        """From when on the operator that is still there goes on as before."""
        return self.until + STAYS_AWAY


def requested_uninstall(body: dict[str, Any], now: datetime) -> UninstallRequest | None:
    """What the policy's object asks for at ``now``; None where it asks for nothing, or for nothing that is readable."""
    annotations = body["metadata"].get("annotations") or {}
    found = _VALUE.fullmatch(str(annotations.get(UNINSTALL, "")).strip())
    if found is None:
        return None
    try:
        until = datetime.fromisoformat(found.group(2))
    except ValueError:
        return None
    if until.tzinfo is None:
        return None
    asked = UninstallRequest(found.group(1) == "Restore", until)
    return asked if now < asked.ends else None
