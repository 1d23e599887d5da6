"""Plug-in API: all that a package with a signal type of its own needs to know of Bellwether.

In: a broker, where it listens, settings from the policy. Out: a ``Measurement``. Called by ``measurer_probe``,
which ``bellwether probe plugin`` runs. A package announces its measurer by an entry point of group
``bellwether.signals`` whose name is the signal type; ``examples/signals/`` has a whole one. What is written here is
stable: it changes only after a release that says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

GROUP = "bellwether.signals"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one look at one broker found.

    ``ok`` ``None`` means no evidence either way, as when the measuring host itself has a problem:
    say so rather than False, for False moves leaders. ``message`` is one sentence for a person. ``value`` is the figure
    that was compared, in the measurer's own unit, for those who read the evidence; it is not judged.
    """

    ok: bool | None
    message: str = ""
    value: float | None = None


class Measurer(Protocol):
    """Measures brokers. The entry point names an object like this, or a class of such that needs no arguments."""

    @property
    def type(self) -> str:
        """The measurer's name in UpperCamelCase, as policies and signals have it; none of Bellwether's own."""

    def measure(
        self, broker: int, addresses: Mapping[str, str], settings: Mapping[str, str], timeout_seconds: float
    ) -> Measurement:
        """Look at one broker once. It is called for several brokers side by side, each call on a thread of its own.

        ``addresses`` has ``host:port`` by name of listener, as far as the broker itself has said so; ``BOOTSTRAP`` is
        where the cluster's metadata has it for clients of the policy's bootstrap servers. Either may be missing or
        out of date: a broker that is down is measured, too. ``settings`` are the policy's, as they are.

        A call that has not returned after ``timeout_seconds`` counts as no evidence, as does one that raises; until it
        does return its broker is not measured again.
        """
