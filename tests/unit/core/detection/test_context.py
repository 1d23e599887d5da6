"""What all decisions of one reconcile share."""

from __future__ import annotations

from bellwether.core.settings.placement import Placement, Preference
from bellwether.core.settings.policy import Policy
from testkit.values.builders import after, cluster, context, partition, record, signal, snapshot, verdicts

THREE = cluster(partition(), racks={1: "a", 2: "b", 3: "c"})
IN_B = Policy(name="main", placement=Placement(Preference(("b",))))


def test_rack_rankings_are_made_once_and_survive_a_changed_record() -> None:
    judged = context(snapshot(THREE), policy=IN_B)
    changed = judged.with_snapshot(record=record(epoch=7), now=after(1))
    assert judged.rankings is not None
    assert changed.rankings is judged.rankings
    assert (changed.snapshot.record.epoch, changed.snapshot.now, changed.policy) == (7, after(1), IN_B)


def test_a_policy_without_racks_has_no_rankings() -> None:
    assert context(snapshot(THREE)).rankings is None


def test_there_is_health_evidence_with_signal_or_healthy_broker() -> None:
    unknown = verdicts(THREE, unknown=[1, 2, 3])
    assert not context(snapshot(THREE), unknown).has_health_evidence
    assert context(snapshot(THREE, signal(age_seconds=None)), unknown).has_health_evidence
    assert context(snapshot(THREE), verdicts(THREE, unknown=[1, 2])).has_health_evidence
