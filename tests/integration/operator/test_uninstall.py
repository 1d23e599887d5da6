"""``bellwether uninstall`` on real parts, and namespaces that are deleted in the middle of a demotion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, CONFIG_MAPS, POLICIES
from bellwether.adapters.undo_record_codec import import_record

if TYPE_CHECKING:
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]


def held(site: Site) -> list[str]:
    """Whatever waits for an operator."""
    return [
        str(one["metadata"]["name"])
        for kind in (POLICIES, CONFIG_MAPS, BROKER_HEALTHS)
        for one in site.api.list(kind, site.namespace)
        if one["metadata"].get("finalizers")
    ]


@pytest.mark.slow
def test_all_orders_are_back_and_nothing_waits_for_an_operator(site: Site) -> None:
    before = site.demote_and_wait(1)
    assert "all replica orders are restored" in site.run("uninstall").output
    assert site.restored(before)
    assert held(site) == []
    assert not site.gone(), "the policy is its owner's"
    site.until(lambda: site.ready()[0] == "Uninstalling", 30, "its condition says so", site.ready)

    assert "all replica orders are restored" in site.run("uninstall").output
    site.processes[0].stop()
    site.delete()
    site.until(site.gone, 30, "a policy that is deleted afterwards does not wait")


def test_a_namespace_deleted_with_its_operator_in_mid_demotion_has_a_way_out(site: Site, tmp_path: Path) -> None:
    before = site.demote_and_wait(1)
    site.processes[0].kill()  # its pod goes with the namespace
    site.kubectl("delete", "namespace", site.namespace, "--wait=false")
    # What the namespace controller does, which does not run here.
    for kind in ("lp", "bh", "cm", "leases.coordination.k8s.io"):
        site.kubectl("delete", kind, "--all", "--wait=false")
    assert "main" in held(site)

    site.run("uninstall", "--without-operator", "--export-to", str(tmp_path / "records"))
    assert held(site) == []
    site.until(site.gone, 30, "the policy is gone")
    assert [m for m in site.api.list(CONFIG_MAPS, site.namespace) if "undo" in m["metadata"]["name"]] == []
    (document,) = (tmp_path / "records").iterdir()
    record = import_record(document.read_bytes(), str(document))
    assert site.baselines(record) == {n: order for n, order in before.items() if order[-1] != 1}
    assert json.loads(document.read_text())["clusterId"] == site.kafka.cluster_id


@pytest.mark.slow
def test_namespace_deleted_under_operator_elsewhere_is_restored_and_ends(bare_site: Site) -> None:
    site = bare_site
    home = site.server.create_namespace(f"{site.namespace}-operator")
    site.topics()
    site.policy()
    site.operator("--lease-namespace", home)
    site.until_reported()
    before = site.demote_and_wait(1)
    site.kubectl("delete", "namespace", site.namespace, "--wait=false")
    for kind in ("lp", "cm"):
        site.kubectl("delete", kind, "--all", "--wait=false")
    site.until(site.gone, 90, "the policy is gone", lambda: held(site))
    assert site.restored(before)
    assert held(site) == []
