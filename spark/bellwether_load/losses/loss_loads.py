"""Load of each surviving broker after each loss of a broker or of a rack.

In: leaders, and who each partition falls to. Out: the busiest survivor of each loss. Followers carry what they carried:
what a leader no longer sends to a lost follower is not taken off.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bellwether_load.balancing.blocks import Floats, Int32s, Int64s
from bellwether_load.losses.loss_input import LossInput


@dataclass(frozen=True, slots=True)
class Loss:
    """One loss: the lost ``domain``, the ``broker`` that is busiest then and its relative ``load``, and how many
    partitions have no replica left."""

    domain: int
    broker: int
    load: Fraction
    leaderless: int


@dataclass(frozen=True)
class Carried:
    """``normal``: load of each broker. ``fallen``: (domains, brokers), what falls to each when a domain is lost."""

    normal: Int64s
    fallen: Int64s


def carried(case: LossInput, kind: str, leader: Int32s, heir: Int32s) -> Carried:
    """Loads with these leaders, exactly: no cluster's load exceeds what a double holds."""
    brokers, domain = case.brokers, np.append(case.domains[kind], -1)
    led = np.bincount(leader, case.loads, brokers + 1)[:brokers].astype(np.int64)
    count = int(case.domains[kind].max(initial=-1)) + 1
    lost = domain[leader]
    falls = (lost >= 0) & (heir < brokers)
    at = lost[falls].astype(np.int64) * brokers + heir[falls]
    fallen = np.bincount(at, case.loads[falls], count * brokers).astype(np.int64).reshape(count, brokers)
    return Carried(case.base + led, fallen)


def relative(case: LossInput, kind: str, found: Carried) -> Floats:
    """(domains, brokers): relative load after each loss, 0 where a broker is lost or closed."""
    domain = case.domains[kind]
    there = case.open & (domain[None, :] != np.arange(len(found.fallen))[:, None])
    return np.where(there, (found.normal + found.fallen) / case.capacity, 0.0)


def losses(case: LossInput, kind: str, leader: Int32s, takers: Int32s) -> list[Loss]:
    """Each loss that a broker survives, by domain."""
    heir = case.heirs(kind, leader, takers)
    found = carried(case, kind, leader, heir)
    loads = relative(case, kind, found)
    lost = np.append(case.domains[kind], -1)[leader]
    none = (lost >= 0) & (heir == case.brokers)
    result = []
    for domain, row in enumerate(loads):
        there = case.open & (case.domains[kind] != domain)
        if not there.any():
            continue
        broker = int(np.argmax(np.where(there, row, -1.0)))
        load = Fraction(int(found.normal[broker] + found.fallen[domain, broker]), int(case.capacity[broker]))
        result.append(Loss(domain, broker, load, int((none & (lost == domain)).sum())))
    return result


def busiest(case: LossInput, leader: Int32s) -> Fraction:
    """The highest relative load of an open broker while none is lost."""
    led = np.bincount(leader, case.loads, case.brokers + 1)[: case.brokers].astype(np.int64)
    found = zip((case.base + led)[case.open].tolist(), case.capacity[case.open].tolist(), strict=True)
    return max((Fraction(load, size) for load, size in found), default=Fraction(0))


def worst(found: list[Loss]) -> Loss | None:
    """The loss with the busiest survivor; None where there is none."""
    return max(found, key=lambda loss: (loss.load, -loss.domain), default=None)
