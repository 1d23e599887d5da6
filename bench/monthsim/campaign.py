"""Runs many months on all cores: the main run, the sensitivity to each assumption, the trade-off of our own settings.

A job names everything that its month depends on, so any of them can be lived again (``replays``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context

from bellwether.core.settings.detection import Detection
from bellwether.core.settings.policy import Policy
from monthsim.assumptions import CLUSTER_SIZES, NAMES, Assumptions, FaultRates
from monthsim.models import MODELS, STANDARD
from monthsim.months import live, our_policy
from monthsim.scoring import Score
from monthsim.worlds import drawn

DEFAULT_BROKER_MONTHS = 3200
MODEL_BROKER_MONTHS = 240
VARIANT_BROKER_MONTHS = 120
SENSITIVITY_BROKER_MONTHS = 24
MODEL = "model: "


@dataclass(frozen=True, slots=True)
class Job:
    """One cluster's month under one variant of the world or of our settings."""

    variant: str
    brokers: int
    seed: tuple[int, ...]
    world: Assumptions = field(default_factory=Assumptions)
    policy: Policy = field(default_factory=our_policy)
    with_peers: bool = False
    model: str = STANDARD


def months(broker_months: int, seed: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Cluster sizes with their seeds: every size has the same share of the broker-months."""
    share = broker_months / len(CLUSTER_SIZES)
    for brokers in CLUSTER_SIZES:
        for number in range(max(1, round(share / brokers))):
            yield brokers, (seed, brokers, number)


def main_jobs(broker_months: int, seed: int) -> list[Job]:
    """The default world, every rule set."""
    return [Job("", brokers, seeds, with_peers=True) for brokers, seeds in months(broker_months, seed)]


def sensitivity_jobs(broker_months: int, seed: int) -> list[Job]:
    """Every assumption halved and doubled, one at a time, on the same seeds."""
    found = []
    for name in NAMES:
        for factor in (0.5, 2.0):
            world = Assumptions().scaled(name, factor)
            found += [Job(f"{name} x{factor:g}", b, s, world) for b, s in months(broker_months, seed)]
    return found


def variants() -> dict[str, Policy]:
    """Our own setting, more patient: the trade-off that the default sits on."""
    return {f"tolerance {n}": our_policy(Detection(tolerance=n)) for n in (1, 2, 3, 5, 10)}


def model_jobs(broker_months: int, seed: int) -> list[Job]:
    """Every fault model on the same seeds, for every rule set."""
    return [
        Job(MODEL + name, b, s, with_peers=True, model=name) for name in MODELS for b, s in months(broker_months, seed)
    ]


def variant_jobs(broker_months: int, seed: int) -> list[Job]:
    """The default world under each of our own variants."""
    return [
        Job(name, b, s, policy=policy) for name, policy in variants().items() for b, s in months(broker_months, seed)
    ]


def lived(job: Job) -> tuple[str, dict[str, Score]]:
    """One job's scores by rule set."""
    month, rng = drawn(job.brokers, job.seed, job.world, FaultRates())
    month = MODELS[job.model].applied(month)
    return job.variant, live(month, job.policy, rng, with_peers=job.with_peers)


def run(jobs: Iterable[Job], processes: int, progress: Callable[[int], None]) -> dict[str, dict[str, Score]]:
    """Scores by variant and rule set."""
    found: dict[str, dict[str, Score]] = {}
    # Large clusters first: a core that is left alone with one at the end would hold everyone up.
    ordered = sorted(jobs, key=lambda j: -j.brokers)
    done = 0
    # Spawned, not forked: a process that has threads, such as a test's, may hold a lock that a fork would wait for.
    with get_context("spawn").Pool(processes) as pool:
        for variant, scores in pool.imap(lived, ordered, chunksize=2):
            for name, score in scores.items():
                found.setdefault(variant, {}).setdefault(name, Score()).add(score)
            done += 1
            progress(done)
    return found
