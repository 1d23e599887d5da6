"""Observe says what it would do and does nothing; suspend freezes; the way from Observe to Enforce acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main
from bellwether.core.signals import Reading
from testkit.processes.sites import demoted

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

VANTAGES = {"externalReachability": {"vantages": ["zone-a"]}}


def test_observe_says_whom_it_would_demote_and_changes_nothing_until_it_enforces(bare_site: Site) -> None:
    site = bare_site
    site.topics()
    site.policy(mode="Observe", detection=VANTAGES)
    site.operator()
    site.until_reported()
    before = site.partitions()
    voice = site.voice("zone-a")
    voice.calls_well(1, 2, 3)
    voice.says(2, Reading.FAILING)
    site.until(lambda: site.status().get("wouldDemote"), 30, "it says whom it would demote", site.status)
    (named,) = site.status()["wouldDemote"]
    assert (named["brokerId"], named["reason"]) == (2, "ExternallyUnreachable")
    reason, message = site.ready()
    assert reason == "NotEnforcing"
    leads = sum(partition.leader == 2 for partition in before.values())
    would = f"would demote broker 2, which leads {leads} partitions"
    assert message.startswith(f"mode Observe: {would}; broker 2 is Sick: ")
    assert site.verdict(2) == ("Sick", "ExternallyUnreachable")
    assert site.status()["plan"]["moves"] > 0
    assert not demoted(site.health(2))
    record = site.record()
    assert record is None or record.empty
    assert site.partitions() == before

    orders = {name: p.replicas for name, p in before.items()}
    site.change(mode="Enforce")
    site.until_demoted(2, orders)


def test_suspend_freezes_what_is_demoted_and_what_is_not(site: Site) -> None:
    before = site.orders()
    site.demote(1)
    site.until_demoted(1, before)
    assert commanded(site, "suspend", "--all").startswith(f"policy {site.namespace}/main: suspended: nothing is moved")
    assert site.status()["mode"] == "Suspended"
    frozen = site.partitions()
    site.lift(1)
    site.demote(3, "must wait")
    generation = site.policy_now()["metadata"]["generation"]
    site.until(lambda: site.status()["plan"]["moves"] > 0, 30, "it plans, and does not act", site.status)
    assert site.status()["observedGeneration"] == generation
    assert site.partitions() == frozen

    assert commanded(site, "resume") == f"policy {site.namespace}/main: resumed; mode Enforce\n"
    site.until_demoted(3, before)
    site.lift(3)
    site.until_restored(before)


def commanded(site: Site, *arguments: str) -> str:
    """What a command prints that ends well."""
    environment = {"KUBECONFIG": str(site.server.kubeconfig)}
    found = CliRunner().invoke(main, [*arguments, "-n", site.namespace, "--wait", "60"], env=environment)
    assert found.exit_code == 0, found.output
    return found.output
