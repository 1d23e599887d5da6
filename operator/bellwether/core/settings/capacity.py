"""Capacity limits of a demotion: how many leaders and how much load one broker may take.

``model.loads`` checks leaders and measured loads against them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Limits per broker during a demotion; None: no limit.

    ``max_load`` is in bytes/s for a broker of capacity ``WHOLE``, and proportional for other brokers. It limits the
    total load of a broker: leading and following.
    """

    max_leaders: int | None = None
    max_load: int | None = None

    @property
    def bounded(self) -> bool:
        """Whether there is any limit."""
        return self.max_leaders is not None or self.max_load is not None

    def __str__(self) -> str:
        """The limits as their fields have them."""
        limits = {"maxLeaders": self.max_leaders, "maxBytesPerSecond": self.max_load}
        return " and ".join(f"spec.demotion.capacity.{field} ({n})" for field, n in limits.items() if n is not None)


UNBOUNDED = Capacity()
