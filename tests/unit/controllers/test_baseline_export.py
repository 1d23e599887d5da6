"""Where an undo record goes that cannot be worked off: never over another one, and never nowhere."""

from __future__ import annotations

import pytest

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, NamespaceEnding, Object, Resource
from bellwether.controllers.policy_finalizer import DOCUMENT, BaselineExports
from bellwether.ports.errors import Terminal, Transient
from testkit.kubernetes.memory_api import MemoryApi

NAME = "bellwether-undo-main-export-1"


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
    assert found == f"operators/{NAME}-of-default"
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
        return "handed over"

    assert BaselineExports(Ending(), hand_over=hand_over).keep("default", NAME, "main", b"one") == "handed over"
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
