"""The undo record in a real API: durable, fenced, and silent when there is nothing to say (invariants 6, 7, 8)."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, KubernetesClient, Object, Resource, connect
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.adapters.kubernetes.objects.undo_record_store import FINALIZER, SHARDS, ConfigMapRecords
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.undo_record import Cause, DemotedBroker, PlanApplication, UndoEntry, UndoRecord
from bellwether.ports.errors import Fenced, Terminal, Transient

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer

pytestmark = pytest.mark.apiserver

CLUSTER = "5L6g3nShT-eMCtK--X86sw"


class Interrupted(Exception):
    """Plays the process being killed."""


class Interrupting(KubernetesClient):
    """A client that calls ``before`` and ``after`` around each write of a ConfigMap."""

    def __init__(
        self,
        api: KubernetesClient,
        before: Callable[[str], None] = lambda _: None,
        after: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(api._api, api.timeout_seconds)
        self.before, self.after = before, after

    def replace(self, resource: Resource, namespace: str, body: Object) -> Object:
        self.before(body["metadata"]["name"])
        written = super().replace(resource, namespace, body)
        self.after(body["metadata"]["name"])
        return written


def some_entries(count: int, seed: int = 1, topics: int = 50) -> dict[PartitionKey, UndoEntry]:
    dice = random.Random(seed)
    entries = {}
    for number in range(count):
        topic = number % topics
        baseline = tuple(dice.sample(range(12), 3))
        key = PartitionKey(base64.urlsafe_b64encode(f"topic id {topic:07}".encode()).decode(), number // topics)
        entries[key] = UndoEntry(f"topic-{topic}", baseline, (*baseline[1:], baseline[0]))
    return entries


def with_demoted(record: UndoRecord) -> UndoRecord:
    since = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    demoted = {2: DemotedBroker(2, Cause.SIGNALS, "Unreachable", "not reachable from a and b", since)}
    return UndoRecord(record.cluster_id, record.epoch, demoted, record.entries)


def versions(api: KubernetesClient, namespace: str) -> dict[str, str]:
    found = api.list(CONFIG_MAPS, namespace)
    return {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in found}


def test_what_was_saved_is_what_the_next_holder_reads(api: KubernetesClient, namespace: str) -> None:
    first = ConfigMapRecords(api, namespace, "main")
    saved = with_demoted(first.take_over(CLUSTER).with_entries(some_entries(700)))
    first.save(saved)
    found = ConfigMapRecords(api, namespace, "main").take_over(CLUSTER)
    assert found.entries == saved.entries
    assert found.demoted == saved.demoted
    assert found.epoch == saved.epoch + 1


def test_every_object_has_a_finalizer_a_label_and_no_owner(api: KubernetesClient, namespace: str) -> None:
    ConfigMapRecords(api, namespace, "main").take_over(CLUSTER)
    found = api.list(CONFIG_MAPS, namespace, {"bellwether.dev/policy": "main"})
    assert len(found) == SHARDS + 1
    for one in found:
        assert one["metadata"]["finalizers"] == [FINALIZER]
        assert "ownerReferences" not in one["metadata"]


def test_a_settled_record_is_not_written_again(api: KubernetesClient, namespace: str) -> None:
    records = ConfigMapRecords(api, namespace, "main")
    record = with_demoted(records.take_over(CLUSTER).with_entries(some_entries(100)))
    records.save(record)
    before = versions(api, namespace)
    records.save(record)
    records.save(UndoRecord(record.cluster_id, record.epoch, dict(record.demoted), dict(record.entries)))
    assert versions(api, namespace) == before


def test_how_far_a_plan_has_come_is_kept_with_the_baselines_and_written_on_news_alone(
    api: KubernetesClient, namespace: str
) -> None:
    records = ConfigMapRecords(api, namespace, "orders")
    taken = records.take_over(CLUSTER)
    begun = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
    record = replace(taken, application=PlanApplication("0123456789abcdef", 7, begun, begun, 2, {"Reassigning": 1}))
    records.save(record)
    header = api.get(CONFIG_MAPS, namespace, "bellwether-undo-orders")
    records.save(record)
    assert api.get(CONFIG_MAPS, namespace, "bellwether-undo-orders") == header
    assert ConfigMapRecords(api, namespace, "orders").take_over(CLUSTER).application == record.application
    elsewhere = ConfigMapRecords(api, namespace, "orders").take_over("another-cluster")
    assert elsewhere.application is None


def test_one_changed_entry_writes_one_shard_and_the_header(api: KubernetesClient, namespace: str) -> None:
    records = ConfigMapRecords(api, namespace, "main")
    entries = some_entries(100)
    record = records.take_over(CLUSTER).with_entries(entries)
    records.save(record)
    before = versions(api, namespace)
    records.save(record.with_entries({next(iter(entries)): None}))
    after = versions(api, namespace)
    assert len([name for name in after if after[name] != before[name]]) == 2


def test_the_older_holder_is_fenced_from_every_part(api: KubernetesClient, namespace: str) -> None:
    for changed in ({}, some_entries(1), some_entries(500)):
        older = ConfigMapRecords(api, namespace, "main")
        record = older.take_over(CLUSTER).with_entries(some_entries(20, seed=9))
        older.save(record)
        taken = ConfigMapRecords(api, namespace, "main").take_over(CLUSTER)
        before = versions(api, namespace)
        with pytest.raises(Fenced, match="another writer has taken over"):
            older.save(with_demoted(record.with_entries(changed)) if changed else with_demoted(record))
        with pytest.raises(Fenced):
            older.save(record)
        assert versions(api, namespace) == before
        ConfigMapRecords(api, namespace, "main").delete(force=True)
        assert taken.entries == record.entries


def test_a_save_that_races_a_take_over_is_either_seen_by_it_or_fenced(api: KubernetesClient, namespace: str) -> None:
    older = ConfigMapRecords(api, namespace, "main")
    record = older.take_over(CLUSTER)
    late = record.with_entries(some_entries(300))
    outcome: list[str] = []

    def save_late(name: str) -> None:
        # Right after the new holder's header was written and before it has reached the shards.
        if name == "bellwether-undo-main" and not outcome:
            outcome.append("saving")
            with pytest.raises(Fenced):
                older.save(late)

    found = ConfigMapRecords(Interrupting(api, after=save_late), namespace, "main").take_over(CLUSTER)
    assert outcome == ["saving"]
    assert found.entries == late.entries, "shards that landed before they were taken over must be read"


@pytest.mark.parametrize("writes", range(SHARDS + 1))
def test_killed_between_two_writes_of_save_nothing_durable_is_lost(
    api: KubernetesClient, namespace: str, writes: int
) -> None:
    done: list[str] = []

    def die(name: str) -> None:
        if len(done) == writes:
            raise Interrupted
        done.append(name)

    calm = ConfigMapRecords(api, namespace, "main")
    first = calm.take_over(CLUSTER).with_entries(some_entries(200, seed=1))
    calm.save(first)
    client = Interrupting(api)
    dying = ConfigMapRecords(client, namespace, "main")
    record = dying.take_over(CLUSTER)
    client.before = die
    with pytest.raises(Interrupted):
        dying.save(record.with_entries(some_entries(400, seed=2, topics=80)))
    found = ConfigMapRecords(api, namespace, "main").take_over(CLUSTER)
    wanted = some_entries(400, seed=2, topics=80)
    assert set(first.entries) <= set(found.entries)
    assert all(entry in (first.entries.get(key), wanted.get(key)) for key, entry in found.entries.items())


@pytest.mark.parametrize("writes", range(SHARDS + 1))
def test_killed_in_middle_of_take_over_next_one_finishes(api: KubernetesClient, namespace: str, writes: int) -> None:
    calm = ConfigMapRecords(api, namespace, "main")
    record = calm.take_over(CLUSTER).with_entries(some_entries(50))
    calm.save(record)
    done: list[str] = []

    def die(name: str) -> None:
        if len(done) == writes:
            raise Interrupted
        done.append(name)

    with pytest.raises(Interrupted):
        ConfigMapRecords(Interrupting(api, before=die), namespace, "main").take_over(CLUSTER)
    last = ConfigMapRecords(api, namespace, "main")
    found = last.take_over(CLUSTER)
    assert found.entries == record.entries
    last.save(found.with_entries({next(iter(found.entries)): None}))


def test_write_whose_answer_was_lost_does_not_fence_its_writer(api: KubernetesClient, namespace: str) -> None:
    lost: list[str] = []

    def lose(name: str) -> None:
        if not lost:
            lost.append(name)
            raise Transient("no answer")

    client = Interrupting(api)
    records = ConfigMapRecords(client, namespace, "main")
    record = records.take_over(CLUSTER).with_entries(some_entries(60))
    client.after = lose
    with pytest.raises(Transient):
        records.save(record)
    records.save(record)
    assert ConfigMapRecords(api, namespace, "main").take_over(CLUSTER).entries == record.entries


def test_a_foreign_label_does_not_fence_the_writer(api: KubernetesClient, namespace: str, apiserver: ApiServer) -> None:
    records = ConfigMapRecords(api, namespace, "main")
    record = records.take_over(CLUSTER)
    apiserver.kubectl("label", "configmap", "-n", namespace, "--all", "team=kafka")
    records.save(record.with_entries(some_entries(60)))
    assert ConfigMapRecords(api, namespace, "main").take_over(CLUSTER).entries == some_entries(60)


def test_another_kafka_cluster_is_refused_while_anything_is_recorded(api: KubernetesClient, namespace: str) -> None:
    records = ConfigMapRecords(api, namespace, "main")
    record = records.take_over(CLUSTER)
    records.save(record.with_entries(some_entries(1)))
    with pytest.raises(Terminal, match=f"belongs to Kafka cluster {CLUSTER}, the policy now reaches other"):
        ConfigMapRecords(api, namespace, "main").take_over("other")
    records.save(record)
    assert ConfigMapRecords(api, namespace, "main").take_over("other").cluster_id == "other"


def test_a_newer_format_is_refused_with_the_remedy(api: KubernetesClient, namespace: str, apiserver: ApiServer) -> None:
    ConfigMapRecords(api, namespace, "main").take_over(CLUSTER)
    patch = '{"data":{"format":"99"}}'
    apiserver.kubectl("patch", "configmap", "-n", namespace, "bellwether-undo-main.3", "--type=merge", "-p", patch)
    with pytest.raises(Terminal, match="format version 99, this program reads 2: run the newer version"):
        ConfigMapRecords(api, namespace, "main").take_over(CLUSTER)


def test_two_policies_whose_names_resemble_shards_do_not_mix(api: KubernetesClient, namespace: str) -> None:
    one, other = ConfigMapRecords(api, namespace, "main"), ConfigMapRecords(api, namespace, "main.0")
    record = one.take_over(CLUSTER).with_entries(some_entries(5))
    one.save(record)
    assert other.take_over("other").empty
    one.save(record.with_entries(dict.fromkeys(record.entries)))


def test_deletion_wants_force_for_a_record_that_is_not_empty(api: KubernetesClient, namespace: str) -> None:
    records = ConfigMapRecords(api, namespace, "main")
    records.save(records.take_over(CLUSTER).with_entries(some_entries(3)))
    with pytest.raises(Terminal, match="still contains 3 partitions"):
        records.delete()
    records.delete(force=True)
    assert records.read() is None
    assert not api.list(CONFIG_MAPS, namespace, {"bellwether.dev/policy": "main"})
    with pytest.raises(Fenced):
        records.save(UndoRecord(CLUSTER, 1))


def test_kubectl_delete_does_not_take_the_record(api: KubernetesClient, namespace: str, apiserver: ApiServer) -> None:
    records = ConfigMapRecords(api, namespace, "main")
    record = records.take_over(CLUSTER).with_entries(some_entries(30))
    records.save(record)
    selector = "--selector=bellwether.dev/policy=main"
    apiserver.kubectl("delete", "configmap", "-n", namespace, selector, "--wait=false")
    later = record.with_entries({next(iter(record.entries)): None})
    records.save(later)
    assert ConfigMapRecords(api, namespace, "main").take_over(CLUSTER).entries == later.entries
    ConfigMapRecords(api, namespace, "main").delete(force=True)
    with pytest.raises(NotFound):
        api.get(CONFIG_MAPS, namespace, "bellwether-undo-main")


def test_an_exported_record_can_be_imported_elsewhere(api: KubernetesClient, namespace: str) -> None:
    records = ConfigMapRecords(api, namespace, "main")
    record = with_demoted(records.take_over(CLUSTER).with_entries(some_entries(40)))
    records.save(record)
    document = records.export()
    with pytest.raises(Terminal, match="not empty"):
        records.import_record(document)
    other = ConfigMapRecords(api, namespace, "copy")
    other.take_over(CLUSTER)
    other.import_record(document)
    found = other.read()
    assert found is not None
    assert (found.entries, found.demoted) == (record.entries, record.demoted)


@pytest.mark.slow
def test_a_hundred_thousand_entries_fit_and_a_thousand_are_saved_with_one_write_per_part(
    api: KubernetesClient, namespace: str
) -> None:
    writes: list[str] = []

    def note(verb: str, plural: str, _outcome: str, _seconds: float) -> None:
        if verb != "get":
            writes.append(f"{verb} {plural}")

    observed = api.observed(note)
    records = ConfigMapRecords(observed, namespace, "main")
    record = records.take_over(CLUSTER)
    for seed in range(5):
        writes.clear()
        records.save(record.with_entries(some_entries(1_000, seed=seed)))
        assert len(writes) <= SHARDS + 1, "each part, and the header"
    one_topic = some_entries(100_000, topics=1)
    records.save(record.with_entries(one_topic))
    sizes = [
        len(base64.b64decode((o.get("binaryData") or {}).get("entries", "")))
        for o in api.list(CONFIG_MAPS, namespace, {"bellwether.dev/policy": "main"})
    ]
    assert max(sizes) < 900_000
    assert ConfigMapRecords(api, namespace, "main").take_over(CLUSTER).entries == one_topic


def test_an_api_server_that_does_not_answer_is_given_up_after_the_time_limit_of_a_request(
    apiserver: ApiServer, namespace: str
) -> None:
    api = connect(apiserver.kubeconfig)
    usual = api.timeout_seconds
    records = ConfigMapRecords(api, namespace, "main")
    record = records.take_over(CLUSTER).with_entries(some_entries(30))
    apiserver.pause_apiserver()
    try:
        api.timeout_seconds = 0.5  # a busy server that does answer may take longer
        with pytest.raises(Transient, match=r"no response within 0\.5 s"):
            records.save(record)
    finally:
        apiserver.resume_apiserver()
    api.timeout_seconds = usual
    records.save(record)
    assert ConfigMapRecords(api, namespace, "main").take_over(CLUSTER).entries == record.entries


def test_a_missing_permission_names_verb_and_resource(apiserver: ApiServer, namespace: str) -> None:
    stranger: Any = connect(apiserver.kubeconfig_for("stranger"))
    with pytest.raises(Terminal, match="lacks the verb 'list' on configmaps in the core API group"):
        ConfigMapRecords(stranger, namespace, "main").take_over(CLUSTER)
