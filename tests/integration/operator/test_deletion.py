"""A policy that is deleted restores what it may, exports what it must leave, and always comes to its end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS
from bellwether.core.signals import Reading

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

ABANDON = "bellwether.dev/abandon=true"


def test_deletion_restores_who_is_well_and_leaves_the_sick_with_their_record_exported(
    shared_site: Site,
) -> None:
    site = shared_site
    site.change(detection={"externalReachability": {"vantages": ["zone-a"]}})
    voice = site.voice("zone-a")
    voice.calls_well(1, 2, 3)
    before = site.orders()
    voice.says(3, Reading.FAILING)
    site.until_demoted(3, before)
    site.demote(1)
    site.until(lambda: site.led_by(1) == site.led_by(3) == 0, 30, "broker 2 leads everything", site.partitions)

    site.delete()
    site.until(site.gone, 90, "the policy is gone", site.status)
    now = site.partitions()
    for name, order in before.items():
        assert now[name].replicas[-1] == 3, name
        assert now[name].leader == (order[0] if order[0] != 3 else now[name].replicas[0]), name
    (record,) = site.exports()
    assert site.baselines(record) == {n: order for n, order in before.items() if order[-1] != 3}
    assert site.record() is None


@pytest.mark.slow
def test_abandon_leaves_every_order_and_exports_the_record(site: Site) -> None:
    before = site.orders()
    site.change(deletionPolicy="Abandon")
    site.demote(1)
    site.until_demoted(1, before)
    displaced = site.orders()
    site.delete()
    site.until(site.gone, 30, "the policy is gone", site.status)
    assert site.orders() == displaced
    (record,) = site.exports()
    assert site.baselines(record) == {n: order for n, order in before.items() if order[-1] != 1}


@pytest.mark.slow
def test_with_kafka_gone_deletion_ends_in_time_and_what_it_exports_restores_all_later(
    site: Site, breakable_kafka: KafkaCluster, tmp_path: Path
) -> None:
    before = site.orders()
    site.change(deletionTimeoutSeconds=4)
    site.demote(1)
    site.until_demoted(1, before)
    for broker in breakable_kafka.brokers.values():
        broker.pause()
    began = time.monotonic()  # before the deletion, whose moment the API server notes in whole seconds
    site.delete()
    site.until(site.gone, 60, "the policy is gone")
    took = time.monotonic() - began
    assert took > 2, "it was given its time"
    (record,) = site.exports()
    exported_orders = site.baselines(record)
    assert exported_orders == {n: order for n, order in before.items() if order[-1] != 1}
    site.tell(f"gone {took:.1f} s after its deletion, with deletionTimeoutSeconds 4")

    breakable_kafka.mend()
    site.kubectl("delete", "bh", "--all")  # as Kubernetes' garbage collector does, which does not run here
    site.policy()
    site.until_reported()
    exported = next(name for name in site.kubectl("get", "cm", "-o", "name").split() if "-export-" in name)
    document = tmp_path / "record.json"
    document.write_text(site.kubectl("get", exported, "-o", r"jsonpath={.data.record\.json}"))
    site.run("undo-record", "import", "--policy", "main", str(document))
    site.change(promotion={"stabilizationSeconds": 1})  # any news; the next turn would come within a minute
    # Kafka fenced whom it did not hear from; Kafka itself brings back the leaders of orders that are not displaced.
    site.until_restored(exported_orders, 120)
    assert site.orders() == before


@pytest.mark.slow
def test_the_annotation_that_abandons_ends_a_waiting_deletion_at_once(
    site: Site, breakable_kafka: KafkaCluster
) -> None:
    before = site.orders()
    site.change(deletionTimeoutSeconds=3600)
    site.demote(1)
    site.until_demoted(1, before)
    for broker in breakable_kafka.brokers.values():
        broker.pause()
    site.delete()
    site.until(lambda: "restoration_failed" in site.logs(), 60, "the deletion waits for Kafka")
    assert not site.gone()
    site.kubectl("annotate", "lp", "main", ABANDON)
    took = site.until(site.gone, 60, "the policy is gone")
    assert len(site.exports()) == 1
    site.tell(f"gone {took:.1f} s after the annotation")


@pytest.mark.slow
def test_foreground_deletion_restores_although_it_takes_the_dependents_first(site: Site) -> None:
    before = site.demote_and_wait(1)
    site.delete("--cascade=foreground")
    # What Kubernetes' garbage collector does, which does not run here.
    for health in site.api.list(BROKER_HEALTHS, site.namespace):
        assert health["metadata"]["ownerReferences"][0]["name"] == "main"
        site.kubectl("delete", "bh", health["metadata"]["name"])
    site.until_restored(before)
    site.until(lambda: finalizers(site) == ["foregroundDeletion"], 60, "only the collector holds it", site.policy_now)
    assert site.record() is None
    assert site.exports() == []


@pytest.mark.slow
def test_a_policy_deleted_while_no_operator_runs_waits_for_one(site: Site) -> None:
    before = site.demote_and_wait(2)
    site.processes[0].stop()
    site.delete()
    assert "bellwether.dev/restore" in finalizers(site)
    site.operator()
    site.until(site.gone, 60, "the policy is gone", site.status)
    assert site.restored(before)


def finalizers(site: Site) -> Any:
    return site.policy_now()["metadata"].get("finalizers", [])
