"""Runs many months on all cores: the main run, the sensitivity to each assumption, the trade-off of our own settings.

A job names everything that its month depends on, so any of them can be lived again (``replays``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing import get_context

from bellwether.core.settings.detection import Detection, Reachability, StorageLatency
from bellwether.core.settings.policy import Policy
from monthsim.assumptions import CLUSTER_SIZES, NAMES, Assumptions, FaultRates
from monthsim.months import live, our_policy
from monthsim.scoring import Score
from monthsim.worlds import drawn

DEFAULT_BROKER_MONTHS = 6000
VARIANT_BROKER_MONTHS = 360
SENSITIVITY_BROKER_MONTHS = 120


@dataclass(frozen=True, slots=True)
class Job:
    """One cluster's month under one variant of the world or of our settings."""

    variant: str
    brokers: int
    seed: tuple[int, ...]
    world: Assumptions = field(default_factory=Assumptions)
    policy: Policy = field(default_factory=our_policy)
    with_peers: bool = False


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
    """Our own settings, made quicker and more patient: the trade-off that the defaults sit on."""
    return {
        "failureThreshold 2": settings(Reachability(failure_threshold=2)),
        "failureThreshold 4": settings(Reachability(failure_threshold=4)),
        "failureThreshold 6": settings(Reachability(failure_threshold=6)),
        "storage 3 of 6": settings(storage=patient(6, 3)),
        "storage 10 of 20": settings(storage=patient(20, 10)),
        "storage 20 of 30": settings(storage=patient(30, 20)),
        "storage 30 of 40": settings(storage=patient(40, 30)),
        "storage 45 of 60": settings(storage=patient(60, 45)),
    }


def patient(samples: int, slow: int) -> StorageLatency:
    """A storage window; a single write may hang for as long as so many slow ones take."""
    return StorageLatency(window_samples=samples, failure_threshold=slow, timeout_seconds=max(5, slow))


def settings(reachability: Reachability | None = None, storage: StorageLatency | None = None) -> Policy:
    """The default policy with one of its kinds of detection set otherwise."""
    made = Detection()
    if reachability is not None:
        made = replace(made, reachability=reachability)
    if storage is not None:
        made = replace(made, storage=storage)
    return our_policy(made)


def variant_jobs(broker_months: int, seed: int) -> list[Job]:
    """The default world under each of our own variants."""
    return [
        Job(name, b, s, policy=policy) for name, policy in variants().items() for b, s in months(broker_months, seed)
    ]


def lived(job: Job) -> tuple[str, dict[str, Score]]:
    """One job's scores by rule set."""
    month, rng = drawn(job.brokers, job.seed, job.world, FaultRates())
    return job.variant, live(month, job.policy, rng, with_peers=job.with_peers)


def run(jobs: Iterable[Job], processes: int, progress: Callable[[int], None]) -> dict[str, dict[str, Score]]:
    """Scores by variant and rule set."""
    found: dict[str, dict[str, Score]] = {}
    # Large clusters first: a core that is left alone with one at the end would hold everybody up.
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
