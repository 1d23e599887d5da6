"""What a policy's loop puts into the audit trail, from a broker's fall to the policy's end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, POLICIES
from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
from bellwether.core.reporting.audit import AuditEntry
from bellwether.core.signals import OverrideState, Reading
from bellwether.ports.errors import Terminal
from bellwether.testing.fault_injection import Faults, Killed
from testkit.offices import Office


@pytest.fixture
def office() -> Iterator[Office]:
    made = Office(audited=True)
    for broker in made.site.cluster.brokers:
        made.site.signals.say(broker, Reading.PASSING)
    yield made
    made.close()


def trail(office: Office) -> list[AuditEntry]:
    return ConfigMapAuditLog(office.api, "default", "main", office.site.clock).read()


def test_a_demotion_and_its_end_stand_with_their_reasons(office: Office):
    loop = office.make(promotion={"stabilizationSeconds": 1})
    office.step(loop)
    assert trail(office) == []
    office.site.signals.say(1, Reading.FAILING)
    office.step(loop, 2)
    (fallen,) = trail(office)
    assert [(c.broker, c.demoted, c.word) for c in fallen.changes] == [(1, True, "signals")]
    assert fallen.changes[0].evidence
    assert fallen.moves is not None
    assert fallen.moves.leaving == {1: 2}
    assert fallen.outcome is not None
    assert (fallen.outcome.reordered, fallen.outcome.elected) == (4, 2)

    office.site.signals.say(1, Reading.PASSING)
    office.step(loop, 6)
    risen = trail(office)[1]
    assert [(c.broker, c.demoted, c.word) for c in risen.changes] == [(1, False, "signals")]
    assert risen.moves is not None
    assert risen.moves.restores == risen.moves.reorders == 4


def test_a_settled_cluster_writes_nothing_whether_or_not_somebody_is_demoted(office: Office):
    loop = office.make()
    office.site.signals.say(1, Reading.FAILING)
    office.step(loop, 4)
    before = [m["metadata"]["resourceVersion"] for m in office.api.all(CONFIG_MAPS)]
    office.step(loop, 20, seconds=10)
    assert [m["metadata"]["resourceVersion"] for m in office.api.all(CONFIG_MAPS)] == before


def test_a_persons_override_is_told_by_its_reason(office: Office):
    loop = office.make()
    office.step(loop)
    office.site.signals.override(2, OverrideState.DEMOTED, "its disk is replaced")
    office.step(loop)
    (change,) = trail(office)[0].changes
    assert (change.word, change.message) == ("override", "its disk is replaced")


def test_who_observes_moves_nothing_and_tells_nothing(office: Office):
    loop = office.make(mode="Observe")
    office.site.signals.say(1, Reading.FAILING)
    office.step(loop, 3)
    assert trail(office) == []


def test_a_trail_that_cannot_be_written_holds_no_demotion(office: Office):
    loop = office.make()
    office.step(loop)
    office.api.refuse("create", CONFIG_MAPS, Terminal("quota"))
    office.site.signals.say(1, Reading.FAILING)
    office.step(loop, 2)
    assert office.site.cluster.snapshot().leaders()[1] == 0
    assert trail(office) == []


def test_a_process_killed_in_the_middle_leaves_its_intent(office: Office):
    faults = Faults()

    def die() -> None:
        raise Killed

    faults.race("reorder", die)
    office.faults = faults.around
    loop = office.make()
    office.site.signals.say(1, Reading.FAILING)
    with pytest.raises(Killed):
        office.step(loop)
    (entry,) = trail(office)
    assert entry.outcome is None
    assert entry.moves is not None


def test_the_end_of_a_policy_is_told_and_the_trail_stays(office: Office):
    loop = office.make()
    office.site.signals.say(1, Reading.FAILING)
    office.step(loop, 2)
    office.api.delete(POLICIES, "default", "main")
    office.step(loop, 30)
    assert office.api.find(POLICIES, "default", "main") is None
    last = trail(office)[-1]
    assert last.occasion.startswith("the policy is being deleted: displaced orders were left as they are")
    assert "exported to default/bellwether-undo-main-export-" in last.occasion
