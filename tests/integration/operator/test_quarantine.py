"""Quarantine on real brokers, from the slow disk to the leaders' return, with the real prober and the real agents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from bellwether.quarantine.pause_watchdog import STOPPED, state_of
from cures.traffic import Traffic
from testkit.processes.sites import POLICY, condition, demoted

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[3] / "examples" / "placement" / "quarantine" / "policy.yaml"
PARTITIONS = 12
SESSION_SECONDS = 9.0


@pytest.fixture
def guarded(bare_site: Site) -> Site:
    """The example's policy, a prober on each disk and a quarantine agent beside each broker."""
    site = bare_site
    asked: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())["spec"]["quarantine"]
    site.topics({site.topic: PARTITIONS}, configs={"min.insync.replicas": "2"})
    site.policy(quarantine=asked)
    site.operator()
    for broker in site.kafka.brokers.values():
        beside = ["--policy", POLICY, "-n", site.namespace, "--broker", str(broker.id)]
        probe = [sys.executable, "-m", "bellwether", "probe", "storage", *beside, "--directory", broker.log_dir]
        site.start(f"storage-{broker.id}", probe, site.kafka.slow_disk(broker.id).environment())
        agent = [sys.executable, "-m", "bellwether", "quarantine-agent", *beside, "--process", broker.pattern]
        site.start(f"agent-{broker.id}", [*agent, "--lease-namespace", site.namespace])
    site.until(lambda: all(site.verdict(b)[0] == "Healthy" for b in (1, 2, 3)), 60, "all are healthy")
    return site


def paused(site: Site) -> bool:
    return state_of(Path("/proc"), site.kafka.broker(1).process.pid) == STOPPED


def said(site: Site) -> str:
    """The reason that the condition Quarantined gives."""
    return str(condition(site.health(1), "Quarantined").get("reason", ""))


def test_a_slow_broker_is_demoted_paused_released_on_recovery_and_leads_again(guarded: Site) -> None:
    site = guarded
    home = site.orders()
    with Traffic(site.kafka.bootstrap, site.topic, PARTITIONS, 60) as traffic:
        site.kafka.slow_disk(1).set(80)
        site.until(lambda: demoted(site.health(1)), 120, "it is demoted")
        site.tell(f"paused after {site.until(lambda: paused(site), 60, 'it is paused', lambda: said(site)):.1f} s")
        alone = site.until(lambda: all(1 not in p.isr for p in site.partitions().values()), 40, "it left every ISR")
        assert alone < SESSION_SECONDS / 2, "by its own shutdown, and not as its session ran out"
        site.tell(f"out of every ISR after {alone:.1f} s")
        site.until(lambda: said(site) == "BrokerHeld", 60, "it is said", lambda: said(site))
        site.kafka.slow_disk(1).clear()
        released = site.until(site.kafka.broker(1).start_if_ended, 60, "it ends, and is started", lambda: said(site))
        site.tell(f"released and started again after {released:.1f} s")
        site.until(lambda: said(site) == "QuarantineEnded", 60, "it is said why", lambda: said(site))
        site.until(lambda: all(1 in p.isr for p in site.partitions().values()), 60, "it is back in every ISR")
        assert traffic.finish() == [], "what was acknowledged is gone"
    site.until(lambda: not demoted(site.health(1)), 90, "it may lead again")
    site.until_restored(home)
