"""How a Lease is waited for."""

from __future__ import annotations

import threading

import pytest

from bellwether.adapters.kubernetes.api_client import LEASES
from bellwether.adapters.kubernetes.leases import ClusterLease
from bellwether.jitter import SHARE
from bellwether.ports.errors import Fenced, LeaseUnconfirmed
from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes.memory_api import MemoryApi


class Counting(threading.Event):
    """An event that is set at the twentieth wait, which takes no time."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits.append(timeout)
        if len(self.waits) == 20:
            self.set()
        return self.is_set()


def test_a_lease_is_confirmed_by_the_api_and_not_by_the_clock() -> None:
    api, clock = MemoryApi(), ManualClock()
    lease, other = (ClusterLease(api, "bellwether", "the-cluster", "kafka/main", clock) for _ in range(2))
    assert lease.acquire()
    lease.confirm()
    api.away = True
    with pytest.raises(LeaseUnconfirmed, match="cannot be read"):
        lease.confirm()
    api.away = False
    taken = api.get(LEASES, "bellwether", lease.name)
    taken["spec"]["holderIdentity"] = other.holder
    api.replace(LEASES, "bellwether", taken)
    assert lease.seconds_left() > 0
    with pytest.raises(Fenced, match=f"holder {other.holder}"):
        lease.confirm()
    assert lease.seconds_left() == 0


def test_waiters_for_same_api_do_not_ask_all_at_once() -> None:
    api, stop = MemoryApi(), Counting()
    api.away = True
    lease = ClusterLease(api, "bellwether", "the-cluster", "kafka/main", ManualClock(), renew_seconds=2.0)
    assert not lease.wait(stop)
    assert len(set(stop.waits)) > 10
    assert all(2.0 * (1 - SHARE) <= wait <= 2.0 * (1 + SHARE) for wait in stop.waits)
