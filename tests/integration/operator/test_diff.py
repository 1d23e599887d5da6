"""``bellwether diff`` on real parts: it foretells the orders and leaders that the running operator then makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner

from bellwether.cli.main import main
from bellwether.core.signals import Reading

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]


def test_diff_foretells_every_order_and_leader_of_a_policy_that_is_to_enforce(bare_site: Site, tmp_path: Path) -> None:
    site = bare_site
    site.topics()
    site.policy(mode="Observe", detection={"externalReachability": {"vantages": ["zone-a"]}})
    site.operator()
    site.until_reported()
    before = site.partitions()
    voice = site.voice("zone-a")
    voice.calls_well(1, 2, 3)
    voice.says(2, Reading.FAILING)
    site.until(lambda: site.status().get("wouldDemote"), 30, "it says which broker it would demote", site.status)

    live = site.policy_now()
    names = {key: live["metadata"][key] for key in ("name", "namespace")}
    kind = {key: live[key] for key in ("apiVersion", "kind")}
    changed = tmp_path / "policy.yaml"
    changed.write_text(yaml.safe_dump({**kind, "metadata": names, "spec": {**live["spec"], "mode": "Enforce"}}))
    environment = {"KUBECONFIG": str(site.server.kubeconfig)}
    done = CliRunner().invoke(main, ["diff", "-f", str(changed), "--for", "1m", "-o", "json"], env=environment)
    assert done.exit_code == 4, done.output
    (told,) = json.loads(done.stdout)
    assert [(s["field"], s["before"], s["after"]) for s in told["settings"]] == [("spec.mode", "Observe", "Enforce")]
    assert (told["current"]["changes"], told["changed"]["demoted"]) == ([], [2])
    record = site.record()
    assert record is None or record.empty
    assert site.partitions() == before

    site.change(mode="Enforce")
    site.until_demoted(2, {name: p.replicas for name, p in before.items()})
    site.until(site.settled, 30, "it has settled", site.status)
    foretold = {str(name): (p.replicas, p.leader) for name, p in before.items()}
    foretold |= {c["partition"]: (tuple(c["order"]), c["leader"]) for c in told["changed"]["changes"]}
    found = {str(name): (p.replicas, p.leader) for name, p in site.partitions().items()}
    assert found == {name: one for name, one in foretold.items() if name in found}
