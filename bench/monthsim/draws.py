"""How times and lengths are drawn. Called by ``noise`` and ``injected`` with the month's one generator."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from monthsim.assumptions import MONTH_SECONDS

P99_AT_FIVE_MEDIANS = 0.692
"""The sigma of a log-normal whose 99th percentile is five times its median."""


def times(rate: float, rng: Generator) -> list[float]:
    """When it happens in a month, at a rate a month; early enough for what lasts long to end in it."""
    return [float(t) for t in rng.uniform(600.0, MONTH_SECONDS - 14_400.0, rng.poisson(rate))]


def lognormal(median: float, sigma: float, rng: Generator) -> float:
    """One draw, by median."""
    return float(median * np.exp(sigma * rng.standard_normal()))


def between(least: float, most: float, rng: Generator) -> float:
    """One draw between two bounds, as often in each factor of ten."""
    return float(np.exp(rng.uniform(np.log(least), np.log(most))))
