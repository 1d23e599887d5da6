"""Who is in maintenance, by a person's request or by the state of a pod."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.model.broker_identity import UNMATCHED, Pod
from bellwether.core.model.maintenance import under_maintenance
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.reasons import Reason
from bellwether.core.signals import Override, OverrideState, Purpose
from testkit.messages import assert_wording
from testkit.values.builders import START, after, demoted, drain, override, record, snapshot

RESTARTED = DemotedBroker(2, Cause.MAINTENANCE, Reason.RESTARTING, "pod kafka-2 is terminating", START)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        pytest.param(drain(1), {1}, id="without an end"),
        pytest.param(drain(1, until=after(1)), {1}, id="until later"),
        pytest.param(drain(1, until=START), set(), id="its time is over"),
        pytest.param(override(1), set(), id="a demotion without a purpose"),
        pytest.param(
            Override(1, OverrideState.PROMOTED, purpose=Purpose.MAINTENANCE), set(), id="a promotion drains no broker"
        ),
    ],
)
def test_a_persons_word_puts_a_broker_in_maintenance(said: Override, asked: set[int]):
    found = under_maintenance([said], None, {}, START)
    assert set(found) == asked
    assert all(one.asked and one.reason is Reason.IN_MAINTENANCE for one in found.values())


def test_the_message_holds_the_reason_and_the_end():
    found = under_maintenance([drain(1, "new disk (ann)", after(60))], None, {}, START)
    assert_wording(found[1].message)


@pytest.mark.parametrize(
    ("pod", "given"),
    [
        pytest.param(Pod("kafka-2"), None, id="ready"),
        pytest.param(Pod("kafka-2", ready=False), "pod kafka-2 is not ready", id="not ready"),
        pytest.param(Pod("kafka-2", leaving=True), "pod kafka-2 is terminating", id="terminating and still ready"),
        pytest.param(Pod("kafka-2", ready=False, leaving=True), "pod kafka-2 is terminating", id="both"),
    ],
)
def test_pod_terminating_or_unready_puts_broker_in_maintenance(pod: Pod, given: str | None):
    found = under_maintenance([], {2: pod}, {}, START)
    assert [(one.message, one.asked) for one in found.values()] == ([(given, False)] if given else [])


def test_a_broker_whose_pod_is_recreated_stays_in_maintenance():
    assert set(under_maintenance([], {1: Pod("kafka-1")}, {2: RESTARTED}, START)) == {2}


@pytest.mark.parametrize(
    ("pods", "standing"),
    [
        pytest.param({}, demoted(2), id="demoted by signals, no pod"),
        pytest.param({}, replace(RESTARTED, cause=Cause.SIGNALS), id="it has restarted, no pod"),
        pytest.param({}, demoted(2, Cause.MAINTENANCE), id="drained at a person's request, no pod"),
        pytest.param({2: Pod("kafka-2")}, RESTARTED, id="its pod is ready again"),
        pytest.param({2: UNMATCHED}, RESTARTED, id="its pod may be one that is not matched"),
        pytest.param(None, RESTARTED, id="pods are not watched any more"),
    ],
)
def test_no_other_broker_without_a_pod_is(pods: dict[int, Pod] | None, standing: DemotedBroker):
    assert under_maintenance([], pods, {2: standing}, START) == {}


def test_a_persons_word_goes_before_a_pods_state():
    found = under_maintenance([drain(2, "new disk")], {2: Pod("kafka-2", ready=False)}, {}, START)
    assert (found[2].asked, found[2].message) == (True, "new disk")


def test_a_snapshot_knows_who_is():
    seen = snapshot(overrides=[drain(1), override(3)], undo=record(None, RESTARTED))
    assert set(seen.maintenance) == {1}
