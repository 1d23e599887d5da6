"""Names that Kubernetes accepts, one for each thing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.adapters.kubernetes import object_names

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@given(st.text(max_size=300), st.integers(20, 253))
def test_every_name_is_legal_and_short_enough(text: str, limit: int) -> None:
    made = object_names.legal(text, limit)
    assert LABEL.fullmatch(made)
    assert len(made) <= limit


@given(st.text(max_size=80), st.text(max_size=80))
def test_two_things_never_share_a_name(one: str, other: str) -> None:
    assert (object_names.legal(one) == object_names.legal(other)) == (one == other)


@pytest.mark.parametrize("text", ["a.b", "x" * 64, "."])
def test_a_name_that_looks_like_a_changed_one_is_changed_too(text: str) -> None:
    made = object_names.legal(text)
    assert object_names.legal(made) not in (made, text)


def test_a_legal_name_stays_as_it_is() -> None:
    assert object_names.legal("main-2") == "main-2"
    assert (
        object_names.prober_lease("main", "ExternalReachability", "eu-1a")
        == "bellwether-prober-main-externalreachability-eu-1a"
    )


def test_cluster_ids_that_differ_by_case_have_separate_leases() -> None:
    assert object_names.cluster_lease("5L6g3nShT-eMCtK--X86sw") != object_names.cluster_lease("5l6g3nShT-eMCtK--X86sw")
    assert len(object_names.cluster_lease("x" * 300)) <= 63
