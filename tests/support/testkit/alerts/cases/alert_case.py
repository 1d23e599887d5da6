"""What a case of an alert is: series as promtool writes them, and whether the alert fires at a time.

A value such as ``0x4 1x20`` is five samples of 0 and twenty-one of 1, each ``every`` after the other from time 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Labels = Mapping[str, str]

POLICY: Labels = {"namespace": "kafka", "policy": "main"}


@dataclass(frozen=True)
class Case:
    """One alert, what was scraped, and what fires ``at``: the labels of each alert, those of its rule left out."""

    alert: str
    what: str
    at: str
    series: Mapping[str, str]
    fires: tuple[Labels, ...] = ()
    every: str = "15s"

    def __str__(self) -> str:
        return f"{self.alert}: {self.what}"


def series(name: str, *sets: Labels, **labels: str) -> str:
    """A series of the policy, or with other labels."""
    own = {**POLICY, **{k: v for more in sets for k, v in more.items()}, **labels}
    inside = ",".join(f'{label}="{value}"' for label, value in own.items() if value)
    return f"bellwether_{name}{{{inside}}}"


def of_policy(**labels: str) -> Labels:
    """The labels of an alert of that policy."""
    return {**POLICY, **labels}
