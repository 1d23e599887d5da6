from __future__ import annotations

from collections.abc import Mapping

import pytest

from bellwether.core.model.cluster import Broker
from bellwether.ports.errors import Transient
from bellwether.ports.kafka import ProbeAnswer
from bellwether.probes.plugins.broker_listeners import Listeners
from bellwether.simulation.memory_world import ManualClock


class Cluster:
    """Brokers, what each says of itself, and how often it was asked."""

    def __init__(self) -> None:
        self.listed = {b: Broker(b, host=f"in-{b}", port=9092) for b in (1, 2)}
        self.said = {
            b: ProbeAnswer(True, 0.002, advertised={"INTERNAL": f"in-{b}:9092", "EXTERNAL": f"out-{b}:1"})
            for b in (1, 2)
        }
        self.asked: list[tuple[int, str]] = []
        self.away = False

    def brokers(self) -> Mapping[int, Broker]:
        if self.away:
            raise Transient("no answer")
        return dict(self.listed)

    def ask(self, address: str, broker_id: int, timeout_seconds: float) -> ProbeAnswer:
        assert timeout_seconds <= 2
        self.asked.append((broker_id, address))
        if broker_id not in self.said:
            raise Transient("too many open files")
        return self.said[broker_id]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_brokers_own_word_and_the_metadatas_are_both_known(cluster: Cluster) -> None:
    known = Listeners(cluster.brokers, cluster, ManualClock()).refresh()
    assert known[2] == {"BOOTSTRAP": "in-2:9092", "INTERNAL": "in-2:9092", "EXTERNAL": "out-2:1"}


def test_brokers_are_asked_again_after_a_minute_or_move(cluster: Cluster) -> None:
    clock = ManualClock()
    listeners = Listeners(cluster.brokers, cluster, clock)
    listeners.refresh()
    clock.advance(59)
    listeners.refresh()
    assert len(cluster.asked) == 2
    cluster.listed[1] = Broker(1, host="moved-1", port=9092)
    assert listeners.refresh()[1]["BOOTSTRAP"] == "moved-1:9092"
    assert cluster.asked[2:] == [(1, "moved-1:9092")]
    clock.advance(2)
    listeners.refresh()
    assert cluster.asked[3:] == [(2, "in-2:9092")]


@pytest.mark.parametrize("silence", ["away", "refused", "broker in trouble", "gone from metadata"])
def test_knowledge_of_silent_broker_is_kept(cluster: Cluster, silence: str) -> None:
    clock = ManualClock()
    listeners = Listeners(cluster.brokers, cluster, clock)
    before = listeners.refresh()[2]
    clock.advance(100)
    if silence == "away":
        cluster.away = True
    elif silence == "refused":
        cluster.said[2] = ProbeAnswer(False, 0.002)
    elif silence == "broker in trouble":
        del cluster.said[2]
    else:
        del cluster.listed[2]
    assert listeners.refresh()[2] == before


def test_a_broker_without_an_address_is_not_asked(cluster: Cluster) -> None:
    cluster.listed[3] = Broker(3, fenced=True)
    assert 3 not in Listeners(cluster.brokers, cluster, ManualClock()).refresh()


def test_broker_that_says_nothing_at_first_is_known_by_metadata(cluster: Cluster) -> None:
    cluster.said[1] = ProbeAnswer(True, 0.002)
    assert Listeners(cluster.brokers, cluster, ManualClock()).refresh()[1] == {"BOOTSTRAP": "in-1:9092"}
