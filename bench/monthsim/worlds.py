"""A cluster's month, drawn from a seed: the same seed, the same month. Called by ``months`` and by tests."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from monthsim.assumptions import VANTAGES, Assumptions, FaultRates
from monthsim.draws import lognormal
from monthsim.episodes import Month
from monthsim.injected import faults as injected
from monthsim.noise import noise


def drawn(brokers: int, seed: tuple[int, ...], world: Assumptions, rates: FaultRates) -> tuple[Month, Generator]:
    """The month of a seed, and the generator that its probers go on with."""
    noises, faults, site, rng = np.random.default_rng(seed).spawn(4)
    found = [*noise(brokers, world, noises), *injected(brokers, rates, world, faults)]
    usual = world.disk_median_seconds * np.exp(0.2 * site.standard_normal(brokers))
    delays = tuple(float(d) for d in site.uniform(0.01, 0.12, VANTAGES))
    phases = site.uniform(0.0, 1.0, (VANTAGES + 1, brokers))
    appends = lognormal(world.fetcher_appends, 1.0, site)
    hangs = bool(site.random() < world.metadata_log_share)
    ordered = tuple(sorted(found, key=lambda e: e.start))
    return Month(brokers, ordered, tuple(float(u) for u in usual), phases, delays, world, seed, appends, hangs), rng
