"""What a Strimzi cluster offers to whom, and what waits while Strimzi is at work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bellwether.core.demotion.decisions import Decisions, decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.strimzi import Listener, Strimzi, choose_listener, external_listeners
from bellwether.core.model.undo_record import Cause
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Demotion, Mode, Policy, PromotionMode
from bellwether.core.settings.rebalance import Rebalance
from bellwether.core.signals import Override, OverrideState
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.core.waves.rebalance_waves import apply_next_wave
from testkit.loads.approved_plans import accepted, loadmove
from testkit.values.builders import (
    cluster,
    decisions,
    demoted,
    override,
    partition,
    record,
    snapshot,
    verdict,
    verdicts,
)

PLAIN = Listener(name="plain", port=9092)
SCRAM = Listener(name="scram", port=9093, tls=True, authentication="scram-sha-512")
MUTUAL = Listener(name="mutual", port=9094, tls=True, authentication="tls")
NAKED = Listener(name="naked", port=9095, authentication="scram-sha-512")
QUIET = Listener(name="quiet", port=9096, tls=True)
BALANCED = Listener(name="external", port=9097, type="loadbalancer", tls=True, authentication="tls")
ALL = (PLAIN, SCRAM, MUTUAL, NAKED, QUIET, BALANCED)

FOUND = Strimzi(namespace="kafka", name="my-cluster", listener="tls")
PAUSED = replace(FOUND, paused=True)
MOVING = replace(FOUND, rebalancing=("full", "small"))


@pytest.mark.parametrize(
    ("there", "wanted", "accepted", "found"),
    [
        pytest.param(ALL, "", ["scram-sha-512", ""], SCRAM, id="the user's own kind comes first"),
        pytest.param(ALL, "", ["tls"], MUTUAL, id="and internal listeners only"),
        pytest.param(ALL, "", [""], QUIET, id="without a user an encrypted one comes first"),
        pytest.param((PLAIN, BALANCED), "", ["tls", ""], PLAIN, id="a listener without authentication will do"),
        pytest.param(ALL, "naked", ["scram-sha-512"], NAKED, id="a listener that is named need not be encrypted"),
        pytest.param(ALL, "external", ["tls"], BALANCED, id="nor internal"),
    ],
)
def test_the_listener_that_is_connected_to(
    there: Sequence[Listener], wanted: str, accepted: Sequence[str], found: Listener
):
    assert choose_listener(there, wanted, accepted, "x") == found


@pytest.mark.parametrize(
    ("there", "wanted", "accepted", "words"),
    [
        pytest.param(
            ALL, "tls", [""], ["no listener tls", "plain (internal, no TLS, no user)", "mutual"], id="unknown"
        ),
        pytest.param(
            ALL, "mutual", ["scram-sha-512"], ["listener mutual", "tls", "the user is of another kind"], id="kind"
        ),
        pytest.param(
            (NAKED, BALANCED), "", ["scram-sha-512"], ["no internal listener is suitable", "naked"], id="not encrypted"
        ),
        pytest.param((), "", [""], ["the listeners are: none"], id="no listener at all"),
    ],
)
def test_listener_that_does_not_fit_is_named_with_existing_ones(
    there: Sequence[Listener], wanted: str, accepted: Sequence[str], words: Sequence[str]
):
    found = choose_listener(there, wanted, accepted, "the user is of another kind")
    assert isinstance(found, Refusal)
    assert found.reason is Reason.STRIMZI_REFERENCE_INVALID
    assert all(word in found.message for word in words), found.message


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param("EXTERNAL", BALANCED, id="no listener is called so: the first that is not internal"),
        pytest.param("plain", PLAIN, id="by Strimzi's name"),
        pytest.param("SCRAM-9093", SCRAM, id="by the name that brokers advertise"),
    ],
)
def test_the_listener_of_clients_outside(wanted: str, found: Listener):
    assert external_listeners(ALL, [wanted]) == (found,)


def test_a_cluster_may_have_no_external_listener():
    assert external_listeners((PLAIN, QUIET), ["EXTERNAL"]) == ("EXTERNAL",)


def test_outside_listeners_are_those_named_and_unknown_names_stay():
    assert external_listeners(ALL, ["SCRAM-9093", "elsewhere", "plain"]) == (SCRAM, "elsewhere", PLAIN)


def test_a_listener_named_in_both_ways_is_one():
    assert external_listeners(ALL, ["SCRAM-9093", SCRAM.name]) == (SCRAM,)


def test_brokers_advertise_a_listener_under_its_name_and_port():
    assert BALANCED.advertised_as == "EXTERNAL-9097"


@pytest.mark.parametrize(
    ("strimzi", "reason", "words"),
    [
        pytest.param(
            PAUSED, Reason.EXTERNAL_OPERATION, ["kafka/my-cluster", "strimzi.io/pause-reconciliation"], id="paused"
        ),
        pytest.param(MOVING, Reason.EXTERNAL_OPERATION, ["full, small", "is running"], id="rebalancing"),
        pytest.param(
            replace(MOVING, paused=True), Reason.EXTERNAL_OPERATION, ["has the annotation"], id="a person comes first"
        ),
    ],
)
def test_the_external_operation_is_named(strimzi: Strimzi, reason: Reason, words: Sequence[str]):
    busy = strimzi.external_operation
    assert busy is not None
    assert busy.reason is reason
    assert all(word in busy.message for word in words)


def test_a_cluster_at_rest_holds_nothing():
    assert replace(FOUND, pods={0: Pod("my-cluster-a-0", ready=False)}).external_operation is None
    assert snapshot().external_operation is None


# Invariant 10: what waits, and what does not.

POLICY = Policy(name="main", mode=Mode.ENFORCE, demotion=Demotion(dwell_seconds=0, max_brokers=2))
FIVE = cluster(partition(replicas=(1, 2, 3)), partition(index=1, replicas=(4, 5, 1)), brokers=5)


def decided(
    strimzi: Strimzi | None,
    *demoted_before: int,
    cause: Cause = Cause.SIGNALS,
    word: Override | None = None,
    reason: Reason | None = None,
    **standings: Sequence[int],
) -> Decisions:
    undo = record(None, *(demoted(b, cause) for b in demoted_before))
    facts = replace(snapshot(FIVE, undo=undo, overrides=[word] if word else []), strimzi=strimzi)
    judged = verdicts(FIVE, **standings)
    if reason is not None:
        judged |= {b: verdict(b, HealthState.SICK, reason) for b in standings["sick"]}
    return decide(Context(facts, judged, POLICY))


@pytest.mark.parametrize("busy", [PAUSED, MOVING])
def test_no_broker_is_promoted_during_an_external_operation(busy: Strimzi):
    assert decided(None, 1).promoted == (1,)
    made = decided(busy, 1)
    assert (made.promoted, list(made.demoted)) == ((), [1])
    hold = made.hold_of(1)
    assert hold is not None
    assert (hold.reason, hold.message.startswith("may lead again; ")) == (busy.external_operation.reason, True)  # type: ignore[union-attr]


def test_the_end_of_an_override_waits_as_well():
    assert list(decided(PAUSED, 1, cause=Cause.OVERRIDE).demoted) == [1]


def test_a_persons_word_passes_in_both_directions():
    assert decided(PAUSED, 1, word=override(1, OverrideState.PROMOTED)).promoted == (1,)
    made = decided(PAUSED, word=override(2, reason="its disk"))
    assert list(made.demoted) == [2]
    assert made.held == ()


def test_who_left_the_cluster_is_not_kept_for_it():
    assert decided(PAUSED, 9).promoted == (9,)


def test_broker_that_is_sick_still_has_one_reason():
    made = decided(PAUSED, 1, sick=[1])
    assert (list(made.demoted), made.held) == ([1], ())


@pytest.mark.parametrize(
    ("reason", "demotes"),
    [
        (Reason.EXTERNALLY_UNREACHABLE, True),
        (Reason.NOT_FENCED_IN_TIME, True),
        (Reason.STORAGE_SLOW, True),
        (Reason.REPLICATION_LAGGING, False),
        (Reason.SIGNAL_FAILING, False),
    ],
)
def test_hard_faults_demote_and_effects_of_rebalance_do_not(reason: Reason, demotes: bool):
    assert list(decided(None, reason=reason, sick=[1]).demoted) == [1]
    made = decided(MOVING, reason=reason, sick=[1])
    assert list(made.demoted) == ([1] if demotes else [])
    assert [h.reason for h in made.held] == ([] if demotes else [Reason.EXTERNAL_OPERATION])


def test_promotion_that_awaits_person_does_not_blame_strimzi():
    manual = replace(POLICY, promotion=replace(POLICY.promotion, mode=PromotionMode.MANUAL))
    facts = replace(snapshot(FIVE, undo=record(None, demoted(1))), strimzi=PAUSED)
    assert [h.reason for h in decide(Context(facts, verdicts(FIVE), manual)).held] == [Reason.PROMOTION_MANUAL]


def test_no_wave_of_a_load_plan_is_taken_up():
    seen = cluster(partition())
    rebalance_input, asked = RebalanceInput(accepted(loadmove(partition()))), replace(POLICY, rebalance=Rebalance())
    facts = snapshot(seen)
    assert apply_next_wave(rebalance_input, Context(facts, verdicts(seen), asked), decisions()).taken == 1
    made = apply_next_wave(rebalance_input, Context(replace(facts, strimzi=MOVING), verdicts(seen), asked), decisions())
    assert made.taken == 0
    assert made.waits is not None
    assert made.waits.reason is Reason.EXTERNAL_OPERATION
