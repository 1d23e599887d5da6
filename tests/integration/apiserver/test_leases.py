"""The Lease on a real API: one holder at a time, judged by our own clock only (invariant 7)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import LEASES, NODES, PODS, KubernetesClient
from bellwether.adapters.kubernetes.former_senders import LOOK_SECONDS, SenderProofs
from bellwether.adapters.kubernetes.leases import ClusterLease
from bellwether.adapters.kubernetes.objects.signal_writer import ProberLease
from bellwether.core.model.undo_record import Sender
from bellwether.core.signals import SignalType
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Fenced
from bellwether.simulation.memory_world import ManualClock
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from realparts.apiserver import ApiServer

pytestmark = pytest.mark.apiserver

CLUSTER = "5L6g3nShT-eMCtK--X86sw"
CONTAINER = {"name": "operator", "image": "bellwether:test"}
NODE_INFO = (
    *("machineID", "systemUUID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion"),
    *("kubeProxyVersion", "operatingSystem", "architecture"),
)
QUICK: dict[str, Any] = {"duration_seconds": 3, "renew_seconds": 0.4, "margin_seconds": 0.5}

HOLDER = """
import sys
from pathlib import Path
from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import connect
from bellwether.adapters.kubernetes.leases import ClusterLease
lease = ClusterLease(connect(Path(sys.argv[1])), sys.argv[2], sys.argv[3], "ns/frozen", SystemClock(),
                     duration_seconds=3, renew_seconds=0.4, margin_seconds=0.5)
assert lease.acquire()
print("held", flush=True)
for line in sys.stdin:
    print(lease.seconds_left(), flush=True)
"""


def lease(
    api: KubernetesClient, namespace: str, policy: str = "ns/main", clock: Clock | None = None, **more: Any
) -> ClusterLease:
    return ClusterLease(api, namespace, CLUSTER, policy, clock or SystemClock(), **{**QUICK, **more})


def stored(api: KubernetesClient, namespace: str) -> Any:
    return api.get(LEASES, namespace, object_names.cluster_lease(CLUSTER))


def renewed(api: KubernetesClient, namespace: str) -> str:
    """When, in the words of the API, which sort as times do."""
    return str(stored(api, namespace)["spec"]["renewTime"])


@pytest.fixture
def process(apiserver: ApiServer, namespace: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDER, str(apiserver.kubeconfig), namespace, CLUSTER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "held\n"
        yield started
        started.kill()


def test_free_lease_is_taken_at_once_and_says_for_whom(api: KubernetesClient, namespace: str) -> None:
    mine = lease(api, namespace, clock=ManualClock(), duration_seconds=30)
    assert mine.seconds_left() == 0
    assert mine.acquire()
    assert mine.seconds_left() == 30
    found = stored(api, namespace)
    assert found["spec"]["holderIdentity"] == mine.holder
    assert found["spec"]["leaseTransitions"] == 0
    assert found["metadata"]["annotations"]["bellwether.dev/kafka-cluster-id"] == CLUSTER
    assert found["metadata"]["annotations"]["bellwether.dev/policy"] == "ns/main"
    mine.release()


def test_a_held_lease_is_renewed_and_keeps_others_out(api: KubernetesClient, namespace: str) -> None:
    mine = lease(api, namespace, duration_seconds=20)  # longer than a busy machine pauses
    other = lease(api, namespace, "elsewhere/second")
    assert mine.acquire()
    renewals = {renewed(api, namespace)}

    def renewed_for_longer_than_others_wait() -> bool:
        assert not other.acquire()
        assert mine.seconds_left() > 0
        renewals.add(renewed(api, namespace))
        return len(renewals) * QUICK["renew_seconds"] > QUICK["duration_seconds"] + QUICK["margin_seconds"]

    until(renewed_for_longer_than_others_wait)
    assert other.owner == f"policy ns/main (holder {mine.holder})"
    assert other.seconds_left() == 0
    mine.release()


def test_a_second_policy_of_the_same_process_is_refused_too(api: KubernetesClient, namespace: str) -> None:
    mine = lease(api, namespace, holder="one-process")
    other = lease(api, namespace, "elsewhere/second", holder="one-process")
    assert mine.acquire()
    assert not other.acquire()
    assert other.owner is not None
    assert "ns/main" in other.owner
    mine.release()


def test_a_released_lease_is_taken_without_waiting(api: KubernetesClient, namespace: str) -> None:
    mine, other = lease(api, namespace), lease(api, namespace)
    assert mine.acquire()
    assert not other.acquire()
    mine.release()
    assert mine.seconds_left() == 0
    assert other.acquire()
    assert stored(api, namespace)["spec"]["leaseTransitions"] == 1
    other.release()


def test_released_lease_of_another_policy_is_free_after_twice_time(api: KubernetesClient, namespace: str) -> None:
    clock = ManualClock()
    first, second = (lease(api, namespace, who, clock) for who in ("prod/main", "staging/main"))
    assert first.acquire()
    first.release()
    assert not second.acquire()
    assert second.owner == "policy prod/main (holder none)"
    clock.advance(2 * (QUICK["duration_seconds"] + QUICK["margin_seconds"]))
    assert not second.acquire()
    clock.advance(0.001)
    assert second.acquire()
    second.release()


def test_a_dead_holder_is_waited_for_as_long_as_its_lease_and_a_request_last(
    api: KubernetesClient, namespace: str, process: subprocess.Popen[str]
) -> None:
    process.kill()
    process.wait()
    clock = ManualClock()
    other = lease(api, namespace, "ns/frozen", clock)
    assert not other.acquire()
    clock.advance(QUICK["duration_seconds"] + QUICK["margin_seconds"])
    assert not other.acquire()
    clock.advance(0.001)
    assert other.acquire()
    assert stored(api, namespace)["spec"]["leaseTransitions"] == 1
    other.release()


def test_an_old_renew_time_on_a_foreign_clock_does_not_make_a_lease_free(
    api: KubernetesClient, namespace: str, apiserver: ApiServer
) -> None:
    mine = lease(api, namespace)
    assert mine.acquire()
    name = object_names.cluster_lease(CLUSTER)
    patch = '{"spec":{"renewTime":"2001-01-01T00:00:00.000000Z","holderIdentity":"another"}}'
    apiserver.kubectl("patch", "lease", name, "-n", namespace, "--type=merge", "-p", patch)
    other = lease(api, namespace)
    assert not other.acquire()
    until(lambda: mine.lost is not None)


def test_a_process_frozen_past_its_lease_finds_nothing_left_when_it_goes_on(
    api: KubernetesClient, namespace: str, process: subprocess.Popen[str]
) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    os.kill(process.pid, signal.SIGSTOP)
    other = lease(api, namespace)
    assert other.wait(threading.Event())
    process.stdin.write("?\n" * 3)
    process.stdin.flush()
    os.kill(process.pid, signal.SIGCONT)
    assert [float(process.stdout.readline()) for _ in range(3)] == [0.0, 0.0, 0.0]
    time.sleep(1)
    process.stdin.write("?\n")
    process.stdin.flush()
    assert float(process.stdout.readline()) == 0.0
    assert other.seconds_left() > 0
    other.release()


def test_a_deleted_lease_is_lost(api: KubernetesClient, namespace: str) -> None:
    mine = lease(api, namespace, duration_seconds=20)
    assert mine.acquire()
    api.delete(LEASES, namespace, object_names.cluster_lease(CLUSTER))
    until(lambda: mine.lost is not None)
    assert mine.seconds_left() == 0
    with pytest.raises(Fenced, match="it was deleted"):
        mine.check()
    assert mine.acquire(), "it can be acquired again, and is renewed again"
    acquired = renewed(api, namespace)
    until(lambda: renewed(api, namespace) > acquired)
    assert mine.seconds_left() > 0
    mine.release()


def test_the_time_left_runs_down_while_the_api_server_is_away_and_recovers(
    apiserver: ApiServer, api: KubernetesClient, namespace: str
) -> None:
    clock = ManualClock()
    mine = lease(api, namespace, clock=clock)
    assert mine.acquire()
    apiserver.pause_apiserver()
    try:
        clock.advance(2.9)
        assert mine.seconds_left() == pytest.approx(0.1)
        clock.advance(0.1)
        assert mine.seconds_left() == 0, "before it has run out for the others"
        assert mine.lost is None
    finally:
        apiserver.resume_apiserver()
    until(lambda: mine.seconds_left() > 0)
    mine.release()


def test_of_two_replicas_of_a_prober_one_speaks_and_the_other_follows_when_it_hangs(
    api: KubernetesClient, namespace: str
) -> None:
    def replica(uid: str) -> ProberLease:
        return ProberLease(
            api,
            namespace,
            "main",
            SignalType.EXTERNAL_REACHABILITY,
            "eu-west-1a",
            SystemClock(),
            duration_seconds=8,  # a busy machine's pause is not to be taken for a hang
            renew_seconds=0.2,
            uid=uid,
        )

    first, second = replica("first"), replica("second")
    assert first.acquire()
    for _ in range(10):
        first.beat()
        assert not second.acquire()
        time.sleep(0.2)
    # The first one's rounds hang from here on: no beat.
    assert second.wait(threading.Event())
    found = api.get(LEASES, namespace, "bellwether-prober-main.externalreachability.eu-west-1a")
    assert found["spec"]["holderIdentity"] == "second"
    until(lambda: first.seconds_left() == 0, 30)
    first.release()
    second.release()


def test_former_sender_has_ended_by_what_kubelet_and_node_report(api: KubernetesClient, namespace: str) -> None:
    clock, node = ManualClock(), f"node-{namespace}"
    old = Sender(f"{namespace}/old", "", "operator", node, "first", clock.now())
    pod: dict[str, Any] = {"metadata": {"name": "old"}, "spec": {"nodeName": node, "containers": [CONTAINER]}}
    created = api.create(PODS, namespace, pod)
    old = old._replace(uid=created["metadata"]["uid"])
    proofs = SenderProofs(api, clock, old._replace(uid="new"))

    def runs(sender: Sender) -> bool:
        clock.advance(LOOK_SECONDS)
        return proofs.running([sender]) != ()

    def report(**state: Any) -> None:
        status = {**CONTAINER, "ready": False, "restartCount": 0, "imageID": "", "state": state}
        api.merge(PODS, namespace, "old", {"status": {"containerStatuses": [status]}}, sub="status")

    report(running={"startedAt": "2026-01-01T00:00:00Z"})
    assert runs(old)
    ended = clock.now() + timedelta(seconds=60)
    report(terminated={"exitCode": 137, "finishedAt": f"{ended:%Y-%m-%dT%H:%M:%SZ}"})
    assert not runs(old)
    forced = old._replace(uid="deleted-by-force")
    assert runs(forced)
    api.create(NODES, "", {"metadata": {"name": node}})
    info = dict.fromkeys(NODE_INFO, "")
    for boot_id, expected in (("first", True), ("second", False)):
        api.merge(NODES, "", node, {"status": {"nodeInfo": {**info, "bootID": boot_id}}}, sub="status")
        assert runs(forced) is expected
    api.delete(NODES, "", node)
