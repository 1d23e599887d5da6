"""Quarantine on real brokers, from the slow disk to the leaders' return, with the real prober and the real agents."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from bellwether.quarantine.hold_watchdog import STOPPED, state_of
from cures.traffic import Traffic
from testkit.processes.sites import POLICY, condition, demoted

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[3] / "examples" / "placement" / "quarantine" / "policy.yaml"
PARTITIONS = 12


@pytest.fixture
def guarded(bare_site: Site) -> Site:
    """The example's policy, a prober on each disk and a quarantine agent next to each broker."""
    site = bare_site
    asked: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())["spec"]["quarantine"]
    site.topics({site.topic: PARTITIONS}, configs={"min.insync.replicas": "2"})
    site.policy(quarantine=asked)
    site.operator()
    for broker in site.kafka.brokers.values():
        beside = ["--policy", POLICY, "-n", site.namespace]
        probe = [sys.executable, "-m", "bellwether", "probe", "storage", *beside, "--directory", broker.log_dir]
        site.start(f"storage-{broker.id}", probe, site.kafka.slow_disk(broker.id).environment())
        agent = [sys.executable, "-m", "bellwether", "quarantine-agent", *beside, "--process", broker.pattern]
        site.start(f"agent-{broker.id}", [*agent, "--lease-namespace", site.namespace])
    site.until(lambda: all(site.verdict(b)[0] == "Healthy" for b in (1, 2, 3)), 60, "all are healthy")
    return site


def held(site: Site) -> bool:
    return state_of(Path("/proc"), site.kafka.broker(1).process.pid) == STOPPED


def said(site: Site) -> str:
    """The reason that the condition Quarantined gives."""
    return str(condition(site.health(1), "Quarantined").get("reason", ""))


def lacking(site: Site) -> list[str]:
    """What the doctor says that quarantine lacks."""
    found = json.loads(site.run("doctor", "--policy", POLICY, "--output", "json").stdout)["quarantine"]
    assert found["enabled"]
    return list(found["missing"])


def test_a_slow_broker_is_held_released_on_recovery_and_leads_again_without_a_change_of_orders(guarded: Site) -> None:
    site = guarded
    site.until(lambda: lacking(site) == [], 60, "the doctor misses no prober and no agent", lambda: lacking(site))
    home = site.orders()
    with Traffic(site.kafka.bootstrap, site.topic, PARTITIONS, 60) as traffic:
        site.kafka.slow_disk(1).set(80)
        out = site.until(
            lambda: all(1 not in (*p.isr, p.leader) for p in site.partitions().values()),
            150,
            "it leads nothing and is in no ISR",
            lambda: said(site),
        )
        site.tell(f"leads nothing and in no ISR after {out:.1f} s")
        site.until(lambda: held(site), 30, "it is held")
        site.until(lambda: said(site) == "BrokerHeld", 60, "it is said", lambda: said(site))
        assert site.orders() == home, "its shutdown has moved the leaders"
        assert not demoted(site.health(1))
        site.kafka.slow_disk(1).clear()
        released = site.until(site.kafka.broker(1).start_if_ended, 60, "it ends, and is started", lambda: said(site))
        site.tell(f"released and started again after {released:.1f} s")
        site.until(lambda: said(site) == "QuarantineEnded", 60, "it is said why", lambda: said(site))
        site.until_restored(home)
        assert traffic.finish() == [], "what was acknowledged is gone"
