"""Random problems by hour of the week: partitions that are busy at once, in three regions, or as jobs.

In: how many partitions and hours, and a seed. Out: a ``HourlyProblem`` of five brokers. Called by unit tests.
"""

from __future__ import annotations

import numpy as np

from bellwether_load.planning.blocks import Block
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.hourly import HourlyProblem

BROKERS = 5


def problem(kind: str, partitions: int, hours: int, seed: int, most: int | None = None) -> HourlyProblem:
    """Topics that are busy at once, in three regions, or as jobs at different hours; one broker is closed."""
    dice = np.random.default_rng(seed)
    topic, hour = np.arange(partitions)[:, None] % 9, np.arange(hours)[None]
    shift = {"in phase": 0 * topic, "three regions": topic % 3 * hours // 3, "jobs": topic * hours // 9}[kind]
    wave = 1 + 0.9 * np.cos((hour - shift) * 2 * np.pi / hours)
    if kind == "jobs":
        wave = np.where((hour - shift) % hours < max(hours // 12, 1), 12.0, 0.4)
    noise = dice.uniform(0.9, 1.1, (partitions, hours))
    loads = np.rint(dice.lognormal(0, 0.5, partitions)[:, None] * wave * noise * 1e6).astype(np.int64)
    eligible = np.array([dice.permutation(BROKERS - 1)[:3] for _ in range(partitions)], np.int32).reshape(-1, 3)
    home = eligible[:, 0].copy()
    forced = dice.random(partitions) < 0.05
    home[forced] = BROKERS
    fixed = dice.integers(0, 10**6, (BROKERS, hours))
    open_ = np.array([True] * (BROKERS - 1) + [False])
    brokers = Brokers.of(
        np.arange(BROKERS), open_, np.array([100, 100, 50, 200, 100]), fixed.max(axis=1), fixed.max(axis=1)
    )
    block = Block(0, BROKERS, np.arange(partitions), loads.max(axis=1), eligible, home, eligible[:, 0].copy())
    return HourlyProblem(block, brokers, loads, fixed, most)
