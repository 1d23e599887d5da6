"""Two installations for one Kafka cluster: which of them acts, what both say, and when a mark goes."""

from __future__ import annotations

import uuid

import pytest

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.installation_marks import LOOK_SECONDS, InstallationMarks, mark
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES
from bellwether.controllers.policy_finalizer import FINALIZER
from bellwether.core.signals import Reading
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import BellwetherError, Terminal, Transient
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import MemoryOperator
from testkit.values.security_settings import PLAINTEXT

OURS, THEIRS = (mark(name, str(uuid.uuid5(uuid.NAMESPACE_DNS, name))) for name in ("bellwether-a", "bellwether-b"))


class MemoryMarks(InstallationMarks):
    """Marks in a dictionary that several installations share."""

    def __init__(self, operator: MemoryOperator, name: str, kept: dict[str, int]) -> None:
        super().__init__(BrokerPool(Connection(("kafka:9092",), PLAINTEXT)), lambda: name, operator.site.clock)
        self.kept, self.error = kept, None
        operator.connector.marks = self

    error: BellwetherError | None

    def places(self) -> dict[str, int]:
        if self.error is not None:
            raise self.error
        return dict(self.kept)

    def write(self, name: str, place: int | None) -> None:
        if place is None:
            del self.kept[name]
        else:
            self.kept[name] = place


def leaders(operator: MemoryOperator) -> int:
    return operator.site.cluster.snapshot().leaders()[1]


def test_second_installation_observes_until_first_withdraws(operator: MemoryOperator):
    marks = MemoryMarks(operator, OURS, {THEIRS: 1})
    loop = operator.begin()
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop)
    assert leaders(operator) == 2
    assert operator.api.get(BROKER_HEALTHS, "default", "main-1")["status"]["verdict"]["state"] == "Sick"
    assert marks.kept == {THEIRS: 1, OURS: 2}
    for type_ in ("Ready", "SoleInstallation"):
        status, reason, message = operator.condition(type_)
        assert (status, reason) == ("False", "ClusterClaimed")
        assert_wording(message)
    del marks.kept[THEIRS]
    operator.step(loop, 3, seconds=LOOK_SECONDS)
    assert leaders(operator) == 0
    assert operator.condition("Ready")[1] != "ClusterClaimed"


def test_first_installation_acts_and_names_the_second(operator: MemoryOperator):
    marks = MemoryMarks(operator, OURS, {})
    loop = operator.begin()
    assert marks.kept == {OURS: 1}
    marks.kept[THEIRS] = 2
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 2, seconds=LOOK_SECONDS)
    assert leaders(operator) == 0
    status, reason, message = operator.condition("SoleInstallation")
    assert (status, reason) == ("False", "ClusterClaimed")
    assert_wording(message)


def test_policy_that_only_observes_has_no_mark(operator: MemoryOperator):
    marks = MemoryMarks(operator, OURS, {OURS: 1, THEIRS: 2})
    operator.begin(mode="Observe")
    assert marks.kept == {THEIRS: 2}


def test_deleted_policy_takes_its_mark_away(operator: MemoryOperator):
    marks = MemoryMarks(operator, OURS, {})
    loop = operator.begin()
    operator.api.delete(POLICIES, "default", "main")
    operator.step(loop, 2)
    assert marks.kept == {}


@pytest.mark.parametrize("error", [Terminal("AlterConfigs on Cluster is missing"), Transient("no answer")])
def test_marks_that_become_unreadable_stop_no_cure(operator: MemoryOperator, error: BellwetherError):
    marks = MemoryMarks(operator, OURS, {})
    loop = operator.begin()
    marks.error = error
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 2, seconds=LOOK_SECONDS)
    assert leaders(operator) == 0


def test_two_installations_that_mark_at_once_agree(operator: MemoryOperator):
    kept = {OURS: 1, THEIRS: 1}
    standings = [MemoryMarks(operator, name, kept).standing(claims=True) for name in (OURS, THEIRS)]
    assert [one.first for one in standings] == [True, False]


def test_deleted_second_policy_leaves_mark_of_the_first(operator: MemoryOperator):
    marks = MemoryMarks(operator, OURS, {})
    operator.step(operator.make())
    marks.kept[THEIRS] = 2
    refused = operator.make("second")
    operator.step(refused, 2)
    operator.api.merge(POLICIES, "default", "second", {"metadata": {"finalizers": [FINALIZER]}})
    operator.api.delete(POLICIES, "default", "second")
    operator.step(refused, 2)
    assert operator.api.find(POLICIES, "default", "second") is None
    assert marks.kept == {OURS: 1, THEIRS: 2}


@pytest.mark.parametrize("error", [Terminal("DescribeConfigs on Cluster is missing"), Transient("no answer")])
@pytest.mark.parametrize("before", ["Enforce", "Observe"])
def test_second_installation_does_not_act_when_marks_become_unreadable(
    operator: MemoryOperator, before: str, error: BellwetherError
):
    marks = MemoryMarks(operator, OURS, {THEIRS: 1})
    loop = operator.make(mode=before)
    operator.step(loop)
    marks.error = error
    operator.change(mode="Enforce")
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 3, seconds=LOOK_SECONDS)
    assert leaders(operator) == 2
