"""``bellwether probe self`` as a process next to real brokers, whose clients come through a proxy that can be cut."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
from bellwether.core.settings.detection import SelfReachability
from bellwether.kafka_connection import Connection
from testkit.values.security_settings import PLAINTEXT
from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

QUIET_AFTER = SelfReachability.idle_after_seconds
# Quiet for so long, then three looks, and two more seconds for writing and reading it here.
SOON = QUIET_AFTER + 3 + 2
# A machine that hangs for a moment makes it later, and never sooner: once in a few times it must be soon.
TRIES, PATIENCE = 4, 90


def port(address: str) -> str:
    return address.rpartition(":")[2]


@contextlib.contextmanager
def visitors(*addresses: str) -> Iterator[None]:
    """A client outside that asks at each address twice a second, on a new connection each time."""
    stop = threading.Event()
    asker = BrokerProbe(Connection(("127.0.0.1:1",), PLAINTEXT))

    def visit(address: str) -> None:
        while not stop.wait(0.5):
            asker.ask(address, 1, 1)

    threads = [threading.Thread(target=visit, args=(a,), daemon=True) for a in addresses]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(limit(5))


def started(bench: Any, kafka: KafkaCluster, *brokers: int) -> None:
    """A sidecar for each broker; only one policy is looked at by several sidecars, each under a source of its own."""
    for number in brokers:
        broker = kafka.broker(number)
        bench.start("self", "--directory", str(broker.log_dir), "--port", port(broker.external_listen))


@pytest.mark.slow
def test_a_broker_whose_listener_is_cut_says_so_itself_while_its_peer_is_talked_to(
    bench: Any, breakable_kafka: KafkaCluster
) -> None:
    proxy = breakable_kafka.proxy
    assert proxy is not None
    with visitors(breakable_kafka.broker(1).external, breakable_kafka.broker(2).external):
        started(bench, breakable_kafka, 1, 2)
        bench.until(lambda: [r for r, _ in bench.readings(1, 2)] == ["Passing", "Passing"], 40)
        assert bench.entry(2)["source"] == "broker-2"
        version = bench.versions(1)
        for _ in range(TRIES):
            proxy.cut("broker-2")
            failed = bench.until(lambda: [r for r, _ in bench.readings(1, 2)] == ["Passing", "Failing"], PATIENCE)
            entry = bench.entry(2)
            assert entry["message"].startswith("no external client sent data on port ")
            assert float(entry["value"]) >= QUIET_AFTER
            proxy.mend("broker-2")
            passed = bench.until(lambda: [r for r, _ in bench.readings(1, 2)] == ["Passing", "Passing"], PATIENCE)
            if max(failed, passed) < SOON:
                break
        assert max(failed, passed) < SOON
        assert bench.versions(1) == version


@pytest.mark.slow
def test_a_frozen_broker_is_quiet_only_once_no_client_sends(bench: Any, breakable_kafka: KafkaCluster) -> None:
    """Its kernel goes on hearing clients: from outside it is reachable, whatever else ails it."""
    broker = breakable_kafka.broker(3)
    with visitors(broker.external):
        started(bench, breakable_kafka, 3)
        bench.until(lambda: bench.entry(3).get("reading") == "Passing", 40)
        broker.pause()
        time.sleep(SOON)
        assert bench.entry(3)["reading"] == "Passing"
    bench.until(lambda: bench.entry(3)["reading"] == "Failing", PATIENCE)
    broker.resume()


def test_one_measurement_is_a_table_and_an_exit_status(breakable_kafka: KafkaCluster) -> None:
    broker = breakable_kafka.broker(1)
    command = [sys.executable, "-m", "bellwether", "probe", "self", "--once", "--port", port(broker.external_listen)]
    with visitors(broker.external):
        well = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit(60))
    assert (well.returncode, "Passing" in well.stdout) == (0, True), well.stderr
    assert "netlink" in well.stdout
    command[-1] = "1"
    down = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit(60), env={**os.environ})
    assert (down.returncode, "no process listens" in down.stdout) == (4, True), down.stderr
