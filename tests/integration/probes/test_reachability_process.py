"""``bellwether probe reachability`` as a process, against real brokers behind a real proxy and a real API."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

WELL = ("Passing", "Passing")
OUTSIDE_BAD = ("Failing", "Passing")
DEAD = ("Failing", "Failing")
# The first of failureThreshold failures is known after periodSeconds + timeoutSeconds, the others follow at half the
# period; and two seconds for writing it there and reading it here.
SOON = 1 + 2 + 6 * 0.5 + 2
# A machine that hangs for a moment makes it later, and never sooner: once in a few times it must be soon.
TRIES, PATIENCE = 4, 45


def started(bench: Any, *arguments: str) -> Any:
    process = bench.start("reachability", "--vantage", "here", *arguments)
    bench.until(lambda: bench.readings(1, 2, 3) == [WELL] * 3, 40)
    return process


def test_a_cut_listener_fails_for_exactly_that_broker_and_recovers(bench: Any, breakable_kafka: KafkaCluster) -> None:
    started(bench)
    assert breakable_kafka.proxy is not None
    for _ in range(TRIES):
        breakable_kafka.proxy.cut("broker-2")
        failed = bench.until(lambda: bench.readings(1, 2, 3) == [WELL, OUTSIDE_BAD, WELL], PATIENCE)
        assert breakable_kafka.broker(2).external in bench.entry(2)["message"]
        breakable_kafka.proxy.mend("broker-2")
        passed = bench.until(lambda: bench.readings(1, 2, 3) == [WELL] * 3, PATIENCE)
        if max(failed, passed) < SOON:
            break
    assert max(failed, passed) < SOON


def test_a_black_hole_is_known_as_soon_and_delays_no_other_broker(bench: Any, breakable_kafka: KafkaCluster) -> None:
    started(bench)
    assert breakable_kafka.proxy is not None
    for _ in range(TRIES):
        breakable_kafka.proxy.blackhole("broker-2")
        time.sleep(0.5)
        breakable_kafka.proxy.cut("broker-3")
        took = bench.until(lambda: bench.readings(1, 2, 3) == [WELL, OUTSIDE_BAD, OUTSIDE_BAD], PATIENCE)
        if took < SOON:
            break
        breakable_kafka.mend()
        bench.until(lambda: bench.readings(1, 2, 3) == [WELL] * 3, PATIENCE)
    assert took < SOON


@pytest.mark.slow
def test_another_broker_behind_the_load_balancer_is_named(bench: Any, breakable_kafka: KafkaCluster) -> None:
    started(bench)
    proxy, brokers = breakable_kafka.proxy, breakable_kafka.brokers
    assert proxy is not None
    way = f"/proxies/{brokers[2].proxy_name}"
    proxy._call("POST", way, {"upstream": brokers[3].external_listen})
    try:
        bench.until(lambda: bench.readings(1, 2, 3) == [WELL, OUTSIDE_BAD, WELL], PATIENCE)
        assert "another broker than 2 answered" in bench.entry(2)["message"]
    finally:
        proxy._call("POST", way, {"upstream": brokers[2].external_listen})
    bench.until(lambda: bench.readings(2) == [WELL], PATIENCE)


@pytest.mark.slow
def test_a_dead_broker_fails_on_both_paths_although_it_has_left_metadata(
    bench: Any, breakable_kafka: KafkaCluster
) -> None:
    started(bench)
    breakable_kafka.broker(3).kill()
    bench.until(lambda: bench.readings(1, 2, 3) == [WELL, WELL, DEAD], PATIENCE)
    time.sleep(12)  # beyond its session, and a reading of the roster
    assert bench.readings(3) == [DEAD]


@pytest.mark.slow
def test_settled_cluster_causes_no_write_while_lease_is_renewed(bench: Any, kafka: KafkaCluster) -> None:
    assert kafka.brokers
    started(bench)
    before, renewed = bench.versions(1, 2, 3), bench.lease()["renewTime"]
    time.sleep(6)
    assert bench.versions(1, 2, 3) == before
    bench.until(lambda: bench.lease()["renewTime"] > renewed, 30)
    managers = {f["manager"] for f in bench.health(1)["metadata"]["managedFields"]}
    assert "bellwether-prober-externalreachability-here" in managers


@pytest.mark.slow
def test_a_prober_that_is_stopped_releases_its_lease_and_one_that_is_killed_lets_it_lapse(
    bench: Any, kafka: KafkaCluster
) -> None:
    assert kafka.brokers
    process = started(bench)
    process.send_signal(signal.SIGTERM)
    assert process.wait(limit(60)) == 0, bench.logs()
    assert not bench.lease().get("holderIdentity")
    second = bench.start("reachability", "--vantage", "here")
    bench.until(lambda: bool(bench.lease().get("holderIdentity")), 60)
    second.kill()
    second.wait()
    lapsed = bench.lease()
    assert lapsed["holderIdentity"]
    time.sleep(3)
    assert bench.lease()["renewTime"] == lapsed["renewTime"]


@pytest.mark.slow
def test_another_replica_of_the_vantage_stands_by_and_takes_over(bench: Any, kafka: KafkaCluster) -> None:
    assert kafka.brokers
    first = started(bench)
    bench.start("reachability", "--vantage", "here")
    time.sleep(3)
    uid = bench.entry(1)["proberUID"]
    first.send_signal(signal.SIGTERM)
    assert first.wait(limit(60)) == 0
    bench.until(lambda: bench.entry(1)["proberUID"] != uid, 60)


def test_one_measurement_is_a_table_and_an_exit_status(bench: Any, breakable_kafka: KafkaCluster) -> None:
    command = [sys.executable, "-m", "bellwether", "probe", "reachability", "--once"]
    without = [*command, "--bootstrap", breakable_kafka.broker(1).internal]

    def run(asked: list[str], environment: dict[str, str], code: int, word: str, count: int) -> Any:
        for _ in range(TRIES):  # a machine that hangs meanwhile gets no answer in time
            done = subprocess.run(asked, capture_output=True, text=True, check=False, env=environment)
            if (done.returncode, done.stdout.count(word)) == (code, count):
                break
        return done

    well = run(without, dict(os.environ), 0, "Passing", 6)
    assert (well.returncode, well.stdout.count("Passing")) == (0, 6), well.stderr
    assert breakable_kafka.proxy is not None
    breakable_kafka.proxy.cut("broker-2")
    environment = {**os.environ, "KUBECONFIG": str(bench.server.kubeconfig)}
    sick = run([*command, "--policy", "main", "-n", bench.namespace], environment, 4, "Failing", 1)
    assert (sick.returncode, sick.stdout.count("Failing")) == (4, 1), sick.stderr
    assert bench.entry(2) == {}
