"""How a Lease is waited for, and what proves that a former holder has ended."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import LEASES, NODES, PODS
from bellwether.adapters.kubernetes.former_senders import LOOK_SECONDS, SenderProofs, this_process
from bellwether.adapters.kubernetes.leases import ClusterLease
from bellwether.core.model.undo_record import Sender
from bellwether.ports.clock import SHARE
from bellwether.ports.errors import Fenced, LeaseUnconfirmed, Terminal
from bellwether.simulation.memory_world import START, ManualClock
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording


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


def test_releaser_of_lease_is_known_to_the_next_holder() -> None:
    api, clock = MemoryApi(), ManualClock()
    old, new = (ClusterLease(api, "ops", "the-cluster", "kafka/main", clock, process=uid) for uid in ("old", "new"))
    assert old.acquire()
    clock.advance(60)
    assert not new.acquire()
    clock.advance(60)
    assert new.acquire()
    assert new.released_by == ""
    new.release()
    assert old.acquire()
    assert old.released_by == "new"


class TestFormerSenders:
    OWN = this_process({"POD_NAME": "new", "POD_UID": "2", "NODE_NAME": "b"}, ManualClock().now())

    def setup_method(self) -> None:
        self.api, self.clock = MemoryApi(), ManualClock()
        environment = {"POD_NAMESPACE": "ops", "POD_NAME": "old", "POD_UID": "1", "NODE_NAME": "a"}
        made = this_process({**environment, "CONTAINER_NAME": "operator"}, self.clock.now())
        self.old = made._replace(boot_id="first")
        self.node("first")
        self.proofs = SenderProofs(self.api, self.clock, self.OWN)

    def node(self, boot_id: str) -> None:
        self.api.put(NODES, {"metadata": {"name": "a", "namespace": ""}, "status": {"nodeInfo": {"bootID": boot_id}}})

    def pod(self, *states: dict[str, Any], uid: str = "1", container: str = "operator") -> None:
        reported = [{"name": container, **dict(zip(("state", "lastState"), states, strict=False))}]
        metadata = {"name": "old", "namespace": "ops", "uid": uid}
        self.api.put(PODS, {"metadata": metadata, "status": {"phase": "Failed", "containerStatuses": reported}})

    def ended(self, seconds: float = 60) -> dict[str, Any]:
        return {"terminated": {"finishedAt": f"{START + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"}}

    def runs(self, one: Sender | None = None) -> bool:
        self.clock.advance(LOOK_SECONDS)
        return self.proofs.running([one or self.old]) != ()

    def test_container_that_kubelet_reports_terminated_has_ended(self) -> None:
        self.pod({"running": {}})
        assert self.runs()
        self.pod(self.ended())
        assert not self.runs()
        assert self.proofs.problem == ""

    def test_container_that_was_started_again_has_ended(self) -> None:
        self.pod({"running": {}}, self.ended())
        assert not self.runs()

    def test_end_of_an_earlier_start_proves_nothing(self) -> None:
        self.pod({"running": {}}, self.ended(-60))
        assert self.runs()

    def test_end_of_another_container_or_pod_proves_nothing(self) -> None:
        self.pod(self.ended(), container="proxy")
        assert self.runs()
        self.pod(self.ended(), uid="9")
        assert self.runs()

    def test_pod_deleted_by_force_proves_nothing(self) -> None:
        assert self.runs()
        assert_wording(self.proofs.problem)

    def test_pod_without_its_node_is_proven_by_its_kubelet_alone(self) -> None:
        one = self.old._replace(node="")
        assert self.runs(one)
        self.pod(self.ended())
        assert not self.runs(one)

    def test_boot_is_named_as_proof_only_where_nodes_can_be_read(self) -> None:
        self.api.refuse("get", NODES, Terminal("not allowed to get nodes"))
        assert self.runs()
        assert "booted" not in self.proofs.problem
        assert "not allowed to get nodes" in self.proofs.problem

    def test_node_that_is_gone_proves_nothing_and_another_boot_does(self) -> None:
        self.api.objects.clear()
        assert self.runs()
        self.node("second")
        assert not self.runs()

    def test_unreadable_pod_proves_nothing_and_is_named(self) -> None:
        self.node("second")
        self.api.refuse("get", PODS, Terminal("not allowed to get pods"))
        assert self.runs()
        assert "not allowed to get pods" in self.proofs.problem
        self.api.refuse("get", PODS, None)
        assert not self.runs()

    def test_process_of_this_machine_has_ended_when_it_is_gone(self) -> None:
        own = this_process({}, self.clock.now())
        space, _, _ = own.uid.rsplit(" ", 2)
        with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as child:
            started = own._replace(uid=f"{space} {child.pid} 1")  # a process that had the number before
            assert not SenderProofs(self.api, self.clock, own).running([started])
            assert SenderProofs(self.api, self.clock, own._replace(uid="x 1 1")).running([own])
        gone = own._replace(uid=f"{space} {child.pid} {own.uid.rsplit(' ', 1)[1]}")
        assert not SenderProofs(self.api, self.clock, own).running([gone])
        assert os.getpid() != child.pid

    @pytest.mark.parametrize(
        ("name", "machine", "ended"),
        [("a", "4f1d", True), ("a", "9c2e", False), ("b", "4f1d", False), ("a", "-", False)],
    )
    def test_another_boot_proves_end_only_on_same_machine(self, name: str, machine: str, ended: bool) -> None:
        own = Sender("a", f"{machine if machine == '-' else '4f1d'} space 1 1", "", "", "second", self.clock.now())
        before = own._replace(name=name, uid=f"{machine} space 9 9", boot_id="first")
        assert (not SenderProofs(self.api, self.clock, own).running([before])) == ended
