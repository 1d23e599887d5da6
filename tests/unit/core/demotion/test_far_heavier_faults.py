"""Harm of another size: what a far heavier fault shares with lighter ones, and when it exceeds the cap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from bellwether.core.demotion import cap
from bellwether.core.demotion.decisions import Decisions, decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Cluster
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Capacity, Demotion, Policy
from bellwether.core.signals import Harm
from testkit.values.builders import after, cluster, demoted, partition, record, signal, snapshot, verdict, verdicts

CAP, SHARED = "CapReached", "SystemicCause"


def ring(brokers: int) -> Cluster:
    """Every broker is the first of a partition with three replicas."""
    replicas = {b: [(b - 1 + k) % brokers + 1 for k in range(3)] for b in range(1, brokers + 1)}
    return cluster(*(partition(index=b, replicas=order) for b, order in replicas.items()), brokers=brokers)


def cut_off(*brokers: int) -> dict[int, Verdict]:
    return {b: verdict(b, reason=Reason.EXTERNALLY_UNREACHABLE, severity=5) for b in brokers}


def held(made: Decisions) -> dict[int, str]:
    return {h.broker: str(h.reason) for h in made.held}


def decided(
    lost: Mapping[int, float], kept: Mapping[int, str], *, limit: int | None = None, brokers: int = 9
) -> Decisions:
    """Two vantages say which share of requests each broker loses, for ten minutes. The cap is one."""
    seen, now = ring(brokers), after(1000)
    noted = [
        replace(signal(b, source=v), harm=Harm(max(2.0, 540 * share), share, after(400)))
        for b, share in lost.items()
        for v in ("vantage-a", "vantage-b")
    ]
    states = {
        "slow": (HealthState.SICK, Reason.STORAGE_SLOW),
        "cut": (HealthState.SICK, Reason.EXTERNALLY_UNREACHABLE),
        "recovering": (HealthState.RECOVERING, None),
    }
    found = verdicts(seen) | cut_off(*lost) | {b: verdict(b, *states[why]) for b, why in kept.items()}
    undo = [replace(demoted(b), reason=states[why][1] or Reason.EXTERNALLY_UNREACHABLE) for b, why in kept.items()]
    asked = Policy(name="main", demotion=Demotion(dwell_seconds=0, max_brokers=1, capacity=Capacity(max_leaders=limit)))
    return decide(Context(snapshot(seen, *noted, now=now, undo=record(None, *undo)), found, asked))


@pytest.mark.parametrize(
    ("kept", "lost", "limit", "chosen"),
    [
        pytest.param({9: "slow"}, {1: 1.0}, None, [1, 9], id="a slow disk, and one cut off"),
        pytest.param({9: "slow"}, {1: 1.0, 2: 1.0}, None, [1, 9], id="one beyond the cap, no more"),
        pytest.param({9: "slow", 1: "cut"}, {1: 1.0, 2: 1.0}, None, [1, 9], id="nor one more later"),
        pytest.param({9: "recovering"}, {1: 1.0}, None, [1, 9], id="one that clients reach again, and one cut off"),
        pytest.param({9: "cut"}, {9: 0.12, 1: 1.0}, None, [1, 9], id="an eighth of all requests, and one cut off"),
        pytest.param({9: "cut"}, {9: 0.3, 1: 1.0}, None, [9], id="not four times as heavy"),
        pytest.param({9: "cut"}, {9: 1.0, 1: 1.0}, None, [9], id="two cut off"),
        pytest.param({9: "cut"}, {1: 1.0}, None, [9], id="nothing known of the first"),
        pytest.param({9: "slow"}, {1: 0.3}, None, [9], id="a slow disk, and one that loses a third"),
        pytest.param({9: "slow"}, {1: 1.0}, 1, [9], id="others without capacity"),
    ],
)
def test_far_heavier_harm_exceeds_the_cap_by_one(
    kept: dict[int, str], lost: dict[int, float], limit: int | None, chosen: list[int]
):
    made = decided(lost, kept, limit=limit)
    assert list(made.demoted) == chosen
    assert held(made) == dict.fromkeys(sorted({*lost} - {*chosen}), CAP)


@pytest.mark.parametrize(
    ("lost", "chosen", "blocked"),
    [
        pytest.param({1: 1.0, 2: 0.12}, [1], {2: SHARED}, id="one cut off next to one that loses an eighth"),
        pytest.param({1: 1.0, 2: 0.3}, [], {1: SHARED, 2: SHARED}, id="not four times as heavy"),
        pytest.param({1: 0.12, 2: 0.12}, [], {1: SHARED, 2: SHARED}, id="two that lose an eighth"),
    ],
)
def test_a_cause_is_shared_only_by_harm_of_one_size(lost: dict[int, float], chosen: list[int], blocked: dict[int, str]):
    made = decided(lost, {}, brokers=3)
    assert (list(made.demoted), held(made)) == (chosen, blocked)


def test_harm_that_began_a_second_ago_is_of_one_size():
    seen, now = ring(3), after(1000)
    noted = [
        replace(signal(b, source="vantage-a"), harm=Harm(lost, share, now - timedelta(seconds=lost + 0.5)))
        for b, lost, share in ((1, 8.0, 0.6), (2, 1.0, 0.1))
    ]
    context = Context(snapshot(seen, *noted, now=now), verdicts(seen) | cut_off(1, 2), Policy(name="main"))
    assert held(decide(context)) == {1: SHARED, 2: SHARED}


def test_a_quorum_of_vantages_agrees_on_what_a_broker_loses():
    seen, lost = ring(9), {"vantage-a": 1.0, "vantage-b": 0.3, "vantage-c": 0.3}
    noted = [replace(signal(1, source=v), harm=Harm(20.0, share, after(0))) for v, share in lost.items()]
    found = verdicts(seen) | cut_off(1) | {9: verdict(9, reason=Reason.STORAGE_SLOW)}
    undo = record(None, replace(demoted(9), reason=Reason.STORAGE_SLOW))
    made = decide(Context(snapshot(seen, *noted, now=after(1000), undo=undo), found, Policy(name="main")))
    assert held(made) == {1: CAP}


def test_loss_of_broker_is_computed_at_most_twice(monkeypatch: pytest.MonkeyPatch):
    found, ask = Counter[int](), cap.lost_share
    monkeypatch.setattr(cap, "lost_share", lambda broker, *more: found.update([broker]) or ask(broker, *more))
    made = decided(dict.fromkeys(range(1, 101), 1.0), {}, brokers=200)
    assert (max(found.values()) <= 2, set(held(made).values())) == (True, {SHARED})
