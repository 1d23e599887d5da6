"""How a question to a broker went, as a test says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bellwether.core.signals import UnreachableCause


@dataclass(frozen=True, slots=True)
class Said:
    """An answer, good by default."""

    ok: bool = True
    seconds: float = 0.002
    stage: str = "Request"
    message: str = ""
    advertised: Mapping[str, str] = field(default_factory=dict)
    weaker: bool = False
    cause: UnreachableCause | None = None

    @property
    def result(self) -> str:
        """How it is counted."""
        return "ok" if self.ok else self.stage
