"""Observe says what it would do and does nothing; ``bellwether diff`` foretells what Enforce does; suspend freezes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from bellwether.core.signals import Reading
from testkit.processes.sites import demoted

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

VANTAGES = {"externalReachability": {"vantages": ["zone-a"]}}


def test_observe_says_and_diff_foretells_what_happens_only_once_it_enforces(
    bare_shared_site: Site, tmp_path: Path
) -> None:
    site = bare_shared_site
    site.topics({site.topic: 12})
    site.policy(mode="Observe", detection=VANTAGES)
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
    noted = difference(site, tmp_path, mode="Enforce")
    assert [(s["field"], s["before"], s["after"]) for s in noted["settings"]] == [("spec.mode", "Observe", "Enforce")]
    assert (noted["current"]["changes"], noted["changed"]["demoted"]) == ([], [2])
    record = site.record()
    assert record is None or record.empty
    assert site.partitions() == before

    site.change(mode="Enforce")
    site.until_demoted(2, {name: p.replicas for name, p in before.items()})
    site.until(site.settled, 30, "it has settled", site.status)
    foretold = {str(name): (p.replicas, p.leader) for name, p in before.items()}
    foretold |= {c["partition"]: (tuple(c["order"]), c["leader"]) for c in noted["changed"]["changes"]}
    found = {str(name): (p.replicas, p.leader) for name, p in site.partitions().items()}
    assert found == {name: foretold[name] for name in found}


def test_suspend_freezes_what_is_demoted_and_what_is_not(shared_site: Site) -> None:
    site = shared_site
    before = site.demote_and_wait(1)
    said = site.run("suspend", "--all", "--wait", "60").output
    assert said.startswith(f"policy {site.namespace}/main: suspended: nothing is moved")
    assert site.status()["mode"] == "Suspended"
    frozen = site.partitions()
    site.lift(1)
    site.demote(3, "must wait")
    generation = site.policy_now()["metadata"]["generation"]
    site.until(lambda: site.status()["plan"]["moves"] > 0, 30, "it plans, and does not act", site.status)
    assert site.status()["observedGeneration"] == generation
    assert site.partitions() == frozen

    assert site.run("resume", "--wait", "60").output == f"policy {site.namespace}/main: resumed; mode Enforce\n"
    site.until_demoted(3, before)
    site.lift_and_wait(3, before)


def difference(site: Site, folder: Path, **changed: str) -> Any:
    """What ``bellwether diff`` foretells of the policy with some fields of its spec changed."""
    live, path = site.policy_now(), folder / "policy.yaml"
    live["metadata"] = {key: live["metadata"][key] for key in ("name", "namespace")}
    path.write_text(yaml.safe_dump({**live, "spec": {**live["spec"], **changed}, "status": {}}))
    (noted,) = json.loads(site.run("diff", "-f", str(path), "--for", "1m", "-o", "json", exits=4).stdout)
    return noted
