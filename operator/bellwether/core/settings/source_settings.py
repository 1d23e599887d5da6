"""Settings of signals from outside: rules on a Prometheus server, and plug-ins, as a SignalSource has them.

The Kubernetes models in ``api/v1alpha1/signal_source`` are made from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from bellwether.core.settings.setting import INTERNAL, SETTING, Setting


class OnFailing(StrEnum):
    """Effect of a failing signal on its broker: ``Demote`` makes it Sick, ``Suspect`` only reports it."""

    DEMOTE = "Demote"
    SUSPECT = "Suspect"


_IN_A_ROW = 3
"""Equal results in a row after which a signal of an outside source changes."""
_LEAST_STALE_AFTER_SECONDS = 10
"""A shorter time would let a pause of the prober's Lease make signals stale."""


class Comparison(StrEnum):
    """Side of the threshold on which a Prometheus rule fails."""

    ABOVE = "Above"
    BELOW = "Below"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusRule:
    """One query that yields a value per broker, and its threshold.

    ``peer_ratio`` additionally requires the value to be that multiple of the other brokers' median; 0 disables it.
    ``leaders_only`` marks a value that is meaningful only while the broker leads, so it is not used to judge a demoted
    broker. ``shows_acks`` marks one that judges no broker: beyond the threshold, it shows producers with ``acks=all``.
    ``alerts`` are the alerts that a query on ``ALERTS`` selects: a broker without a series has the value 0.
    """

    name: str
    query: str
    threshold: float
    period_seconds: int = 15
    comparison: Comparison = Comparison.ABOVE
    peer_ratio: int = 0
    broker_label: str = "broker"
    leaders_only: bool = False
    failure_threshold: int = _IN_A_ROW
    success_threshold: int = _IN_A_ROW
    on_failing: OnFailing = OnFailing.DEMOTE
    shows_acks: bool = False
    alerts: tuple[str, ...] = ()

    @property
    def timeout_seconds(self) -> int:
        """Timeout of one query: two thirds of the period."""
        return max(1, self.period_seconds * 2 // 3)

    @property
    def stale_after_seconds(self) -> int:
        """Seconds after which a signal is ignored: four periods."""
        return max(_LEAST_STALE_AFTER_SECONDS, 4 * self.period_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A signal type measured by a third-party prober (entry point group ``bellwether.signals``)."""

    type: str
    sources: Annotated[int, Setting(1, 16)] = 1
    """Number of sources that must report Failing before the broker is judged failing."""
    period_seconds: Annotated[int, Setting(1, 3600)] = 10
    """Seconds between two measurements. A measurement may take half as long, and signals older than six periods are
    ignored.
    """
    failure_threshold: Annotated[int, INTERNAL] = _IN_A_ROW
    success_threshold: Annotated[int, INTERNAL] = _IN_A_ROW
    leaders_only: Annotated[bool, SETTING] = False
    """The signal is meaningful only while the broker leads: a demoted broker is not judged by it."""
    on_failing: Annotated[OnFailing, SETTING] = OnFailing.DEMOTE
    """Effect of a failing signal: Demote makes the broker Sick, Suspect only reports it."""
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def timeout_seconds(self) -> int:
        """Timeout of one measurement: half of the period."""
        return max(1, self.period_seconds // 2)

    @property
    def stale_after_seconds(self) -> int:
        """Seconds after which a signal is ignored: six periods."""
        return max(_LEAST_STALE_AFTER_SECONDS, 6 * self.period_seconds)
