"""The table of probers: what each command of ``bellwether probe`` writes, and what it needs to be started with.

The command line, the chart's values, accounts and arguments, and the checks of CONTRIBUTING.md come from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bellwether.core.signals import ON_BROKER_HOST, SignalType


class ProberCommand(NamedTuple):
    """One command of ``bellwether probe``.

    ``types`` are the signal types that it writes, of which the first names its Lease; none for a plug-in's own.
    ``source_option`` names it among its like: ``vantage`` must be given, as it says where the prober is; ``source`` has
    a ``default``.
    """

    types: tuple[SignalType, ...]
    source_option: str = "vantage"
    default: str = ""

    @property
    def sidecar(self) -> bool:
        """Whether it runs in a broker's pod and writes for that broker alone."""
        return any(type_ in ON_BROKER_HOST for type_ in self.types)


PROBERS: Mapping[str, ProberCommand] = {
    "reachability": ProberCommand((SignalType.EXTERNAL_REACHABILITY,)),
    "canary": ProberCommand((SignalType.CANARY,)),
    "replication": ProberCommand((SignalType.REPLICATION_LAG,), "source", "replication"),
    "certificates": ProberCommand((SignalType.CERTIFICATE_EXPIRY,), "source"),
    "prometheus": ProberCommand((SignalType.PROMETHEUS,), "", "*"),
    "plugin": ProberCommand((), "source"),
    "storage": ProberCommand((SignalType.STORAGE_LATENCY, SignalType.READ_LATENCY), "source"),
    "self": ProberCommand((SignalType.SELF_REACHABILITY,), "source"),
}
"""By the name of the command, which with a capital is the prober's kind in the chart's values.

A prober of several sources, such as Prometheus rules, has the default ``*`` and no option.
"""
