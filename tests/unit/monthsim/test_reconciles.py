from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bellwether.core.settings.policy import Policy, Quarantine
from monthsim.assumptions import Assumptions, FaultRates
from monthsim.episodes import Disk, DiskEffect, Episode, Kind, Month, Path
from monthsim.injected import cut, down, slow_disk
from monthsim.months import look, operate, our_policy
from monthsim.noise import frozen, rolling_restart
from monthsim.reconciles import Operator, Outcome
from monthsim.relief import Cure
from monthsim.worlds import drawn

POLICY = our_policy()
ALONE = replace(POLICY, quarantine=Quarantine())
BUSY, QUIET = 20.0, 1.0
"""Appends a second of each replica fetcher: with writes of 0.2 s the first trails, the second keeps up."""


def month(*episodes: Episode, brokers: int = 3, appends: float = BUSY, metadata_hangs: bool = False) -> Month:
    phases = np.random.default_rng(1).uniform(0.0, 1.0, (4, brokers))
    ordered = tuple(sorted(episodes, key=lambda e: e.start))
    site = (0.00126,) * brokers, phases, (0.02, 0.05, 0.1)
    return Month(brokers, ordered, *site, Assumptions(), (), appends, metadata_hangs)


def lived(*episodes: Episode, policy: Policy = POLICY, **more: Any) -> Outcome:
    one = month(*episodes, **more)
    return operate(one, look(one, policy.detection, np.random.default_rng(2)), policy)


def demoted(found: Outcome) -> list[tuple[int, str]]:
    return [(d.broker, d.reason) for d in found.demotions]


def test_external_cut_demotes_once_it_has_cost_what_move_costs() -> None:
    found = lived(cut(Kind.EXTERNAL_CUT, 1000.0, 600.0, (1,), Path.REFUSED))
    assert demoted(found) == [(1, "ExternallyUnreachable")]
    assert 1001.5 < found.demotions[0].time < 1004.0


@pytest.mark.parametrize(
    ("appends", "policy", "cures"),
    [
        pytest.param(QUIET, POLICY, [Cure.DEMOTION], id="it keeps up"),
        pytest.param(QUIET, ALONE, [Cure.DEMOTION], id="it keeps up, and no agent"),
        pytest.param(BUSY, POLICY, [Cure.HELD], id="it trails"),
        pytest.param(BUSY, ALONE, [], id="it trails, and no agent"),
    ],
)
def test_a_slow_disk_gets_the_cure_that_the_core_chooses(appends: float, policy: Policy, cures: list[Cure]) -> None:
    found = lived(slow_disk(Kind.DISK_SLOW, 1000.0, 3600.0, 2, 0.2), policy=policy, appends=appends)
    assert [(d.broker, d.cure) for d in found.demotions if d.time < 4600.0] == [(2, cure) for cure in cures]
    assert {h.reason for h in found.held} == (set() if cures else {"NoRelief"})


def stalled(seconds: float = 3600.0) -> Episode:
    disk = DiskEffect(1000.0, 1000.0 + seconds, Disk.STALLED, (1,))
    return Episode(Kind.DISK_STALLED, 1000.0, 1000.0 + seconds, (1,), disks=(disk,))


def test_a_stalled_disk_without_agents_is_left_to_kafka_that_fences_it() -> None:
    found = lived(stalled(), policy=ALONE, metadata_hangs=True)
    assert not [d for d in found.demotions if d.time < 4600.0]


def test_a_stalled_disk_that_kafka_does_not_fence_is_demoted() -> None:
    found = lived(stalled(), policy=ALONE)
    assert [d.cure for d in found.demotions] == [Cure.DEMOTION]
    assert 1020.0 < found.demotions[0].time < 1030.0


def freezing(*spans: tuple[float, float]) -> list[Episode]:
    return [frozen(Kind.GC_PAUSE, start, seconds, 0) for start, seconds in spans]


@pytest.mark.parametrize("seed", range(4))
def test_broker_that_pauses_at_random_is_demoted_within_half_minute(seed: int) -> None:
    rng, at, spans = np.random.default_rng(seed), 1000.0, []
    for _ in range(20):
        spans.append((at, rng.uniform(1.0, 6.0)))
        at += sum(rng.uniform(1.0, 6.0, 1)) + spans[-1][1]
    found = lived(*freezing(*spans))
    assert demoted(found)[:1] == [(0, "Freezing")]
    assert found.demotions[0].time < 1030.0


def test_a_rolling_restart_demotes_no_broker() -> None:
    rng = np.random.default_rng(3)
    assert demoted(lived(*rolling_restart(1000.0, 6, Assumptions(), rng), brokers=6)) == []


def test_a_dead_broker_is_down_and_not_demoted() -> None:
    found = lived(down(1000.0, 900.0, 0, Assumptions(), np.random.default_rng(4)))
    assert demoted(found) == []
    assert found.downs[0].broker == 0
    assert 1001.5 < found.downs[0].time < 1010.0


def test_a_recovered_broker_is_demoted_again_at_its_next_fault() -> None:
    found = lived(
        cut(Kind.EXTERNAL_CUT, 1000.0, 300.0, (0,), Path.REFUSED),
        cut(Kind.EXTERNAL_CUT, 9000.0, 300.0, (0,), Path.REFUSED),
    )
    assert [round(d.time, -3) for d in found.demotions] == [1000.0, 9000.0]


def outcome(one: Month, *, screened: bool) -> tuple[Sequence[object], Sequence[object]]:
    seen = look(one, POLICY.detection, np.random.default_rng(5))
    operator = Operator(one, POLICY, screened=screened)
    fenced = tuple(a for e in one.episodes for a in e.fenced)
    silent = tuple(a for e in one.episodes for a in e.silent)
    found = operator.run(seen.news, fenced, silent)
    return [(round(d.time, 6), d.broker, d.reason) for d in found.demotions], [d.broker for d in found.downs]


@pytest.mark.slow
def test_skipped_reconciles_would_have_decided_nothing() -> None:
    world = Assumptions(path_outages=10.0, loss_bursts=30.0, shared_loss_bursts=4.0, hiccups=8.0)
    one, _ = drawn(6, (9, 6, 0), world, FaultRates(external_cut=0.5, disk_slow=0.3, broker_down=0.3))
    screened, whole = outcome(one, screened=True), outcome(one, screened=False)
    assert len(screened[0]) > 5
    # A turn more moves the polls by which metadata is read, and with them a demotion by as much.
    assert [d[1:] for d in screened[0]] == [d[1:] for d in whole[0]]
    assert sorted(screened[1]) == sorted(whole[1])
