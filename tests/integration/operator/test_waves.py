"""Leaders that return in waves on real brokers: step by step, rolled back by a relapse, gone on with by a successor."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.core.signals import Reading
from bellwether.kafka_connection import Connection
from bellwether.ports.kafka import Reorder
from realparts import kubernetes_binaries
from testkit.kafka.kafka_site import PATIENT
from testkit.processes.sites import condition, demoted
from testkit.values.security_settings import PLAINTEXT
from waiting import TooLate, limit

if TYPE_CHECKING:
    from testkit.processes.fake_prober import FakeProber
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

EXAMPLES = Path(__file__).parents[3] / "examples" / "placement"
LEADS = 30
PAUSE_SECONDS = 8
"""Between two waves: long enough to look at the first in peace."""
QUICK = ("--lease-duration", "6", "--lease-renew", "0.5")


@pytest.fixture
def waved(bare_site: Site) -> tuple[Site, FakeProber]:
    """Ninety partitions, of which each broker leads thirty; they return as in the example, and sooner."""
    site = bare_site
    orders = [[1 + (i + k) % 3 for k in range(3)] for i in range(3 * LEADS)]
    site.topics({site.topic: len(orders)}, assignments={site.topic: orders})
    site.policy(
        detection={"externalReachability": {"vantages": ["zone-a"]}},
        promotion={
            "stabilizationSeconds": 2,
            "waves": {**spec("waves")["promotion"]["waves"], "pauseSeconds": PAUSE_SECONDS},
        },
        demotion={"dwellSeconds": 0},
    )
    site.operator(*QUICK)
    site.until_reported()
    voice = site.voice("zone-a")
    voice.calls_well(1, 2, 3)
    site.until(lambda: all(site.verdict(b)[0] == "Healthy" for b in (1, 2, 3)), 30, "all are healthy")
    return site, voice


def spec(example: str) -> dict[str, Any]:
    """What an example asks for."""
    return dict(yaml.safe_load((EXAMPLES / example / "policy.yaml").read_text())["spec"])


def led(site: Site) -> int:
    """How many of the site's own partitions broker 1 leads."""
    return sum(p.leader == 1 for p in site.partitions(site.topic).values())


def wave(site: Site) -> dict[str, Any]:
    """How far the way back of broker 1 has come, as its status says; empty while it is not on the way."""
    return dict(site.health(1).get("restoration") or {})


def move_leaders_on(site: Site) -> None:
    """Let the second of each order lead, and leave the orders as they are."""
    mover = KafkaMover(BrokerPool(Connection(tuple(site.kafka.bootstrap.split(",")), PLAINTEXT), PATIENT))
    home = site.orders()
    for turned in (1, 0):
        mover.reorder([Reorder(name, order[turned:] + order[:turned]) for name, order in home.items()])
        site.until(
            lambda t=turned: site.orders() == {n: o[t:] + o[:t] for n, o in home.items()},  # type: ignore[misc]
            30,
            "the orders are turned",
        )
        if turned:
            mover.elect(list(home))
            site.until(lambda: all(p.leader == p.replicas[0] for p in site.partitions().values()), 30, "they lead")


@pytest.mark.slow
def test_wave_is_rolled_back_by_a_relapse_and_starts_again(waved: tuple[Site, FakeProber]) -> None:
    site, voice = waved
    before = site.orders()
    voice.says(1, Reading.FAILING)
    site.until_demoted(1, before)

    voice.says(1, Reading.PASSING)
    site.until(lambda: wave(site).get("wave") == 1, 30, "the first wave", lambda: site.health(1))
    first = led(site)
    assert first < LEADS / 2
    assert wave(site)["sharePercent"] == 10
    assert condition(site.health(1), "Demoted")["reason"] == "RestoringInWaves"
    site.until(lambda: "leaders are restored in waves" in site.ready()[1], 30, "the policy says so", site.ready)
    site.until(lambda: wave(site).get("wave") == 2, 30, "the second wave", lambda: site.health(1))
    site.until(lambda: led(site) > first, 5, "it shows", site.partitions)
    assert led(site) < LEADS

    voice.says(1, Reading.FAILING)
    site.until(lambda: led(site) == 0, 30, "it leads nothing again", site.partitions)
    site.until(lambda: demoted(site.health(1)) and not wave(site), 30, "its way back has ended")
    record = site.record()
    assert record is not None
    assert (set(record.demoted), record.returning) == ({1}, {})
    assert site.health(1)["flapping"]["demotions"] == 2

    voice.says(1, Reading.PASSING)
    began = time.monotonic()
    site.until(lambda: wave(site).get("wave") == 1, 30, "it begins with the first wave", lambda: site.health(1))
    words = ["main", site.namespace, "1"]
    path = f"{kubernetes_binaries.kubectl().parent}:{os.environ['PATH']}"
    environment = {**os.environ, "KUBECONFIG": str(site.server.kubeconfig), "PATH": path}
    watch = [EXAMPLES / "waves" / "watch.sh", *words]
    noted = subprocess.run(watch, env=environment, capture_output=True, text=True, timeout=limit(90), check=True)
    assert noted.stdout.startswith("wave 1 of 3: 10 % of its leaders may be restored")
    assert "wave 2 of 3: 50 % of its leaders may be restored" in noted.stdout
    assert noted.stdout.endswith("The broker is free to lead.\n")
    site.until_restored(before, 60)
    took = time.monotonic() - began
    site.tell(f"back in three waves {took:.1f} s after the repair, {PAUSE_SECONDS} s between waves")
    site.until(site.settled, 30, "the policy is settled", site.ready)


@pytest.mark.slow
def test_another_operator_goes_on_with_the_wave_that_it_finds(waved: tuple[Site, FakeProber]) -> None:
    site, voice = waved
    before = site.orders()
    voice.says(1, Reading.FAILING)
    site.until_demoted(1, before)
    voice.says(1, Reading.PASSING)
    site.until(lambda: wave(site).get("wave") == 1, 30, "the first wave", lambda: site.health(1))
    record = site.record()
    assert record is not None
    first = record.returning[1]
    assert first.share == 10
    standing = sum(before[p.name][0] == 1 and not first.withholds(p.key) for p in site.partitions(site.topic).values())
    assert 1 <= standing < LEADS / 2
    site.until(lambda: led(site) == standing, 5, "it shows", site.partitions)
    site.processes[0].kill()
    site.operator(*QUICK)
    site.until(lambda: led(site) > standing, 90, "the next wave", lambda: site.health(1))
    taken_over = site.record()
    assert taken_over is not None
    assert taken_over.epoch == record.epoch + 1
    site.until_restored(before, 60)


def brought_back(site: Site) -> dict[str, Any]:
    """Leaders that were elsewhere are at home again with an operator: what it says of its part in that."""

    def noted() -> dict[str, Any]:
        return dict(site.status().get("periodicElection", {}))

    def at_home() -> bool:
        return all(p.leader == p.replicas[0] for p in site.partitions(site.topic).values())

    last = noted().get("lastRun")
    move_leaders_on(site)
    process = site.operator()
    site.until(at_home, 60, "every leader is the first of its order", site.partitions)
    with suppress(TooLate):  # one that was too late has nothing to tell
        site.until(lambda: noted().get("lastRun") != last and "imbalanceAfter" in noted(), 30, "it is reported")
    process.stop()
    return noted()


def test_leaders_off_their_preferred_replica_return_every_few_seconds(bare_site: Site) -> None:
    site = bare_site
    site.topics({site.topic: 12})
    home = site.orders()
    site.policy(election={**spec("periodic-election")["election"], "intervalSeconds": 5})
    found = brought_back(site)
    if found.get("elected", 0) < 12:  # Kafka's own election was quicker, and comes again in five minutes at the soonest
        found = brought_back(site)
    assert found["autoRebalance"] == "Enabled"
    assert found["imbalanceBefore"] >= 12 <= found["elected"]
    assert found["imbalanceAfter"] <= found["imbalanceBefore"] - 12
    assert site.orders() == home
    record = site.record()
    assert record is not None
    assert record.empty
