from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bellwether.recording.traces.merge_patch import difference, patched

LEAVES = st.one_of(st.integers(2, 99), st.text(max_size=3), st.lists(st.integers(0, 3), max_size=3))
KEYS = st.sampled_from("abc")
DOCUMENTS = st.dictionaries(
    KEYS, st.recursive(LEAVES, lambda below: st.dictionaries(KEYS, below, max_size=3), max_leaves=8), max_size=3
)


@given(DOCUMENTS, DOCUMENTS)
def test_the_difference_makes_the_one_of_the_other(before: dict[str, object], after: dict[str, object]):
    assert patched(before, difference(before, after)) == after


@given(DOCUMENTS)
def test_nothing_differs_from_itself(document: dict[str, object]):
    assert difference(document, dict(document)) == {}


def test_what_is_the_same_object_is_not_looked_into():
    class Watched(dict):  # type: ignore[type-arg]
        def items(self):  # type: ignore[no-untyped-def]
            raise AssertionError("looked into")

    kept = Watched(a=1)
    assert difference({"kept": kept, "b": 1}, {"kept": kept, "b": 2}) == {"b": 2}


def test_a_patch_leaves_the_document_before_it_alone():
    before = {"a": {"b": 1, "c": 2}, "d": {"e": 1}}
    after = patched(before, {"a": {"b": None}})
    assert (before["a"], after["a"]) == ({"b": 1, "c": 2}, {"c": 2})
    assert after["d"] is before["d"]


def test_what_is_gone_is_null_as_rfc_7396_has_it():
    assert difference({"a": 1, "b": {"c": 1}}, {"b": {}}) == {"b": {"c": None}, "a": None}
