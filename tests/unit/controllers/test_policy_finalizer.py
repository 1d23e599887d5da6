"""The finalizer and the export: what keeps a policy, and what is left of it."""

from __future__ import annotations

import json

import pytest

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, POLICIES, Object, Resource
from bellwether.adapters.kubernetes.api_errors import NamespaceEnding
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.controllers.policy_finalizer import DOCUMENT, FINALIZER, BaselineExports, PolicyFinalizer
from bellwether.core.model.undo_record import EntryState
from bellwether.ports.errors import Terminal, Transient
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.values.builders import CLUSTER_ID, demoted, entry, partition


@pytest.fixture
def api() -> MemoryApi:
    made = MemoryApi()
    made.put(POLICIES, api_objects.policy())
    return made


def body(api: MemoryApi) -> dict:
    return api.get(POLICIES, "default", "main")


def displaced(api: MemoryApi) -> None:
    records = ConfigMapRecords(api, "default", "main")
    taken = records.take_over(CLUSTER_ID).with_entries({partition().key: entry()})
    records.save(type(taken)(CLUSTER_ID, taken.epoch, {1: demoted(1)}, taken.entries))


def test_adopting_twice_writes_once(api: MemoryApi):
    PolicyFinalizer(api).adopt(body(api))
    PolicyFinalizer(api).adopt(body(api))
    assert body(api)["metadata"]["finalizers"] == [FINALIZER]
    assert len(api.writes) == 1


def test_adopting_keeps_the_finalizers_of_others(api: MemoryApi):
    api.merge(POLICIES, "default", "main", {"metadata": {"finalizers": ["another.example/f"]}})
    PolicyFinalizer(api).adopt(body(api))
    assert body(api)["metadata"]["finalizers"] == ["another.example/f", FINALIZER]


def test_a_stale_view_of_the_policy_is_read_again_and_loses_nobodys_finalizer(api: MemoryApi):
    stale = body(api)
    api.merge(POLICIES, "default", "main", {"metadata": {"finalizers": ["another.example/f"]}})
    PolicyFinalizer(api).adopt(stale)
    PolicyFinalizer(api).adopt(stale)
    assert body(api)["metadata"]["finalizers"] == ["another.example/f", FINALIZER]


def test_releasing_a_policy_that_is_gone_is_no_error(api: MemoryApi):
    standing = body(api)
    api.delete(POLICIES, "default", "main")
    PolicyFinalizer(api).release(standing)


def test_releasing_works_on_a_stale_view(api: MemoryApi):
    PolicyFinalizer(api).adopt(body(api))
    stale = body(api)
    api.merge(POLICIES, "default", "main", {"spec": {"suspend": True}})
    PolicyFinalizer(api).release(stale)
    assert body(api)["metadata"]["finalizers"] == []


def test_an_empty_record_is_removed_without_an_export(api: MemoryApi):
    ConfigMapRecords(api, "default", "main").take_over(CLUSTER_ID)
    assert PolicyFinalizer(api).close_record(body(api)) is None
    assert api.all(CONFIG_MAPS) == []


def test_tombstones_alone_are_not_worth_an_export(api: MemoryApi):
    records = ConfigMapRecords(api, "default", "main")
    records.save(records.take_over(CLUSTER_ID).with_entries({partition().key: entry(state=EntryState.RESTORED)}))
    assert PolicyFinalizer(api).close_record(body(api)) is None
    assert api.list(CONFIG_MAPS, "default") == []


def test_tombstone_whose_order_may_still_arrive_is_exported(api: MemoryApi):
    records = ConfigMapRecords(api, "default", "main")
    late = entry(state=EntryState.RESTORED, outstanding=[((2, 3, 1), 2)])
    records.save(records.take_over(CLUSTER_ID).with_entries({partition().key: late}))
    exported = PolicyFinalizer(api).close_record(body(api))
    assert exported is not None
    (kept,) = api.all(CONFIG_MAPS)
    assert json.loads(kept["data"][DOCUMENT])["topics"]


def test_no_record_at_all_is_no_error(api: MemoryApi):
    assert PolicyFinalizer(api).close_record(body(api)) is None


def test_what_the_record_held_is_exported_under_the_policys_uid(api: MemoryApi):
    displaced(api)
    name = PolicyFinalizer(api).close_record(body(api))
    assert name == "default/bellwether-export-main.uid-main"
    (export,) = api.all(CONFIG_MAPS)
    assert export["metadata"]["annotations"] == {"bellwether.dev/policy": "main"}
    assert json.loads(export["data"]["record.json"])["clusterId"] == CLUSTER_ID


def test_an_export_can_be_put_back(api: MemoryApi):
    displaced(api)
    PolicyFinalizer(api).close_record(body(api))
    document = api.all(CONFIG_MAPS)[0]["data"]["record.json"].encode()
    again = ConfigMapRecords(api, "default", "main")
    again.take_over(CLUSTER_ID)
    imported = again.import_record(document)
    assert (dict(imported.entries), list(imported.demoted)) == ({partition().key: entry()}, [1])


def test_a_second_try_after_the_export_removes_the_record(api: MemoryApi):
    displaced(api)
    api.refuse("merge", CONFIG_MAPS, Transient("away"))
    with pytest.raises(Transient):
        PolicyFinalizer(api).close_record(body(api))
    assert len(api.all(CONFIG_MAPS)) > 1
    api.refuse("merge", CONFIG_MAPS, None)
    assert PolicyFinalizer(api).close_record(body(api)) is not None
    assert len(api.all(CONFIG_MAPS)) == 1


def test_an_unreadable_record_is_kept(api: MemoryApi):
    displaced(api)
    before = len(api.all(CONFIG_MAPS))
    api.refuse("list", CONFIG_MAPS, Terminal("not allowed"))
    with pytest.raises(Terminal):
        PolicyFinalizer(api).close_record(body(api))
    assert len(api.all(CONFIG_MAPS)) == before


NAME = "bellwether-export-main.1"


class Ending(MemoryApi):
    """An API server on which one namespace is being deleted."""

    def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        """As ever, but for that namespace."""
        if namespace == "default":
            raise NamespaceEnding("its namespace is being deleted")
        return super().create(resource, namespace, body)


def documents(api: MemoryApi) -> dict[str, str]:
    return {f"{m['metadata']['namespace']}/{m['metadata']['name']}": m["data"][DOCUMENT] for m in api.all(CONFIG_MAPS)}


def test_it_is_stored_next_to_the_record():
    api = MemoryApi()
    assert BaselineExports(api).keep("default", NAME, "main", b"one") == f"default/{NAME}"
    assert documents(api) == {f"default/{NAME}": "one"}


def test_the_same_document_is_kept_once():
    api = MemoryApi()
    BaselineExports(api).keep("default", NAME, "main", b"one")
    assert BaselineExports(api).keep("default", NAME, "main", b"one") == f"default/{NAME}"
    assert len(api.all(CONFIG_MAPS)) == 1


def test_another_document_never_takes_the_place_of_the_first():
    api = MemoryApi()
    BaselineExports(api).keep("default", NAME, "main", b"one")
    assert BaselineExports(api).keep("default", NAME, "main", b"two") == f"default/{NAME}-2"
    assert documents(api) == {f"default/{NAME}": "one", f"default/{NAME}-2": "two"}


def test_where_the_namespace_ends_it_goes_to_the_operators():
    api = Ending()
    found = BaselineExports(api, refuge="operators").keep("default", NAME, "main", b"one")
    assert found == f"operators/{NAME}.default"
    (kept,) = api.all(CONFIG_MAPS)
    assert kept["metadata"]["annotations"] == {"bellwether.dev/policy": "default/main"}


@pytest.mark.parametrize("refuge", [None, "default"])
def test_where_no_other_namespace_is_left_it_is_refused(refuge: str | None):
    with pytest.raises(NamespaceEnding):
        BaselineExports(Ending(), refuge=refuge).keep("default", NAME, "main", b"one")


def test_a_person_takes_what_no_namespace_takes():
    taken: list[tuple[str, str, bytes]] = []

    def hand_over(*given: object) -> str:
        taken.append(given)  # type: ignore[arg-type]
        return "exported"

    assert BaselineExports(Ending(), hand_over=hand_over).keep("default", NAME, "main", b"one") == "exported"
    assert taken == [("default", "main", b"one")]


def test_a_person_who_wants_it_at_hand_gets_it_at_hand():
    api = MemoryApi()
    assert (
        BaselineExports(api, hand_over=lambda *_: "here", at_hand=True).keep("default", NAME, "main", b"one") == "here"
    )
    assert api.all(CONFIG_MAPS) == []


@pytest.mark.parametrize("error", [Transient("away"), Terminal("too large")])
def test_what_the_api_refuses_is_not_taken_for_kept(error: Transient | Terminal):
    api = MemoryApi()
    api.refuse("create", CONFIG_MAPS, error)
    with pytest.raises(type(error)):
        BaselineExports(api).keep("default", NAME, "main", b"one")
