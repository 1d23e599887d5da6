"""Judge for how many days the certificates of a broker's external listeners are still valid.

In: what reads the end of the certificate at an address. Out: a ``Measurement`` of one broker, as a plug-in's, counted
and reported by ``measurer_probe``. Called by ``bellwether probe certificates``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from bellwether.core.settings.detection import CertificateExpiry
from bellwether.core.settings.source_settings import Plugin
from bellwether.core.signals import SignalType
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.probes.plugins.plugin_api import Measurement

_LISTENERS, _MINIMUM_DAYS = "listeners", "minimumDays"


def measured_by(settings: CertificateExpiry, listeners: tuple[str, ...]) -> Plugin:
    """The settings of the policy as ``measurer_probe`` takes them."""
    values = ((_LISTENERS, ",".join(listeners)), (_MINIMUM_DAYS, str(settings.minimum_days)))
    # One look at a new certificate is enough; three fail, as a date does not change while a listener is restarted.
    return Plugin(
        type=SignalType.CERTIFICATE_EXPIRY,
        period_seconds=settings.period_seconds,
        success_threshold=1,
        settings=values,
    )


class BrokerCertificates:
    """The external listeners of a broker: the certificate that expires first counts."""

    type = SignalType.CERTIFICATE_EXPIRY

    def __init__(self, ends: Callable[[str, float], datetime], clock: Clock) -> None:
        self._ends, self._clock = ends, clock

    def measure(
        self, broker: int, addresses: Mapping[str, str], settings: Mapping[str, str], timeout_seconds: float
    ) -> Measurement:
        """Look at each listener that the policy names. A listener without TLS, or that gives no answer, is no evidence:
        whether it can be reached is the question of another signal.
        """
        names = settings[_LISTENERS].split(",")
        found, unread = dict[str, datetime](), []
        for name in names:
            if name not in addresses:
                unread.append(f"broker {broker} has not said where its listener {name} is")
                continue
            try:
                found[name] = self._ends(addresses[name], timeout_seconds / len(names))
            except (OSError, ValueError, Terminal, Transient) as error:
                unread.append(f"listener {name} ({addresses[name]}) shows no certificate: {error}")
        if not found:
            return Measurement(None, "; ".join(unread))
        name, first = min(found.items(), key=lambda item: item[1])
        days = (first - self._clock.now()) / timedelta(days=1)
        whose = f"the certificate of listener {name} ({addresses[name]})"
        text = f"{whose} {'expires' if days > 0 else 'expired'} on {first:%Y-%m-%d at %H:%M} UTC"
        return Measurement(days >= float(settings[_MINIMUM_DAYS]), text, days)
