"""Who is asked sooner than its period asks for: brokers that have just begun to fail, as long as they are few.

Called by ``brokerwatch``, on the thread of ``rounds``. Where many fail at once, the vantage has failed, or something
that they share: nobody is demoted for that, and asking all of them twice as often would only make this process late.
"""

from __future__ import annotations

HASTE = 0.5
"""The share of its period after which a broker that fails is asked again."""
MOST = 20


class Haste:
    """The brokers that are in haste now."""

    def __init__(self) -> None:
        self._hurried: set[int] = set()

    def pace(self, broker: int, period_seconds: float, *, failing: bool) -> float:
        """Seconds from one round of a broker to its next."""
        if failing and (broker in self._hurried or len(self._hurried) < MOST):
            self._hurried.add(broker)
            return period_seconds * HASTE
        self._hurried.discard(broker)
        return period_seconds

    def forget(self, broker: int) -> None:
        """It is not watched any more."""
        self._hurried.discard(broker)
