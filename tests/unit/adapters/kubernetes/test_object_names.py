"""Names that Kubernetes accepts, one for each thing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
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
    assert object_names.prober_lease("main", "Canary", "eu-1a") == "bellwether-prober-main.canary.eu-1a"


POLICY = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,40}[a-z0-9])?", fullmatch=True) | st.sampled_from(
    ["a", "a-1", "a.b", "a-canary", "a-b-2e7336dc8e", "a-export-1a2b3c4d", "main.canary"]
)
SOURCE = st.sampled_from(["x", "canary-x", "eu.1", "A", "a.canary.x", "1"]) | POLICY
KAFKA_ID = st.text(max_size=60) | st.sampled_from(
    ["prober-main.canary.x", "cluster-a", "quarantine-kafka.main-1", "undo-main", "a-b-2e7336dc8e"]
)
MADE = st.one_of(
    st.tuples(st.just(object_names.cluster_lease), KAFKA_ID),
    st.tuples(st.just(object_names.prober_lease), POLICY, st.sampled_from(["Canary", "ReplicationLag"]), SOURCE),
    st.tuples(st.just(object_names.quarantine_order), st.sampled_from(["a", "a-b"]), POLICY, st.integers(0, 12)),
    st.tuples(st.just(object_names.undo_record), POLICY),
    st.tuples(st.just(object_names.audit_trail), POLICY),
    st.tuples(st.just(object_names.export), POLICY, st.sampled_from(["1a2b3c4d", "canary"])),
    st.tuples(st.just(object_names.plan_job), POLICY, st.sampled_from(["1", "a-1", "at-20261121-0400"])),
    st.tuples(st.just(object_names.broker_health), POLICY, st.integers(0, 12)),
)
SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")


@given(MADE, MADE)
@example((object_names.prober_lease, "a", "Canary", "canary-x"), (object_names.prober_lease, "a-canary", "Canary", "x"))
def test_no_two_objects_of_any_kind_share_a_name(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    (name_one, *of_one), (name_other, *of_other) = one, other
    made = name_one(*of_one)
    assert (made == name_other(*of_other)) == (one == other)
    assert SUBDOMAIN.fullmatch(made)
    assert len(made) <= 253


def test_cluster_ids_that_differ_by_case_have_separate_leases() -> None:
    assert object_names.cluster_lease("5L6g3nShT-eMCtK--X86sw") != object_names.cluster_lease("5l6g3nShT-eMCtK--X86sw")
    assert len(object_names.cluster_lease("x" * 300)) <= 63
