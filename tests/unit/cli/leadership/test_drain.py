"""``drain`` through an operator in memory: what is written, awaited and printed, and exit statuses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS
from bellwether.cli.leadership import drain, wait
from bellwether.cli.main import main
from bellwether.core.signals import Override, Reading
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import MemoryOperator

pytestmark = pytest.mark.usefixtures("shift")
ASKED = ("drain", 2, "--policy", "main")


class Shift:
    """An operator that takes turns while the command waits; ``after`` so many waits something happens."""

    def __init__(self, operator: MemoryOperator) -> None:
        self.operator = operator
        self.loop = operator.make(promotion={"stabilizationSeconds": 3})
        self.waits = 0
        self.events: dict[int, list[object]] = {}
        self.asleep = False
        for _ in range(3):
            self.reconcile()

    def reconcile(self) -> None:
        """One turn of the operator, with what people have written into the API."""
        signals = self.operator.site.signals
        for health in self.operator.api.all(BROKER_HEALTHS):
            self.loop.signals.on_broker_health(health)
        for broker in self.operator.site.cluster.brokers:
            signals.lift(broker)
        for override in self.loop.signals.overrides():
            said: Override = override
            accepting = said.accept_unavailable_writes
            signals.override(
                said.broker, said.state, said.reason, said.until, said.purpose, accept_unavailable_writes=accepting
            )
        self.operator.step(self.loop)

    def wait(self, _: float = 0.0) -> None:
        self.waits += 1
        assert self.waits < 500, "the command waits for ever"
        for event in self.events.pop(self.waits, []):
            event()  # type: ignore[operator]
        if not self.asleep:
            self.reconcile()


@pytest.fixture
def operator() -> MemoryOperator:
    return MemoryOperator.well()


@pytest.fixture
def shift(operator: MemoryOperator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shift]:
    made = Shift(operator)
    operator.api.serve_commands(monkeypatch)
    monkeypatch.setattr(drain, "SystemClock", lambda: operator.site.clock)
    # The command's own time only: other threads of this process sleep, too, and would take turns of the operator.
    monkeypatch.setattr(wait, "time", SimpleNamespace(sleep=made.wait, monotonic=operator.site.clock.monotonic))
    yield made
    operator.close()


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def words(found: Result) -> str:
    return " ".join(found.output.split())


def override(operator: MemoryOperator, broker: int = 2) -> dict[str, str] | None:
    return operator.api.get(BROKER_HEALTHS, "default", f"main-{broker}")["spec"].get("override")


def put_override(operator: MemoryOperator, **said: str) -> None:
    operator.api.merge(BROKER_HEALTHS, "default", "main-2", {"spec": {"override": said}})


def leaders(operator: MemoryOperator) -> int:
    return operator.site.cluster.snapshot().leaders()[2]


@pytest.mark.parametrize(
    ("option", "value"), [("--for", "soon"), ("--for", "0s"), ("--for", "9" * 18 + "d"), ("--timeout", "1")]
)
def test_a_mistake_is_answered_with_the_option_and_the_remedy(option: str, value: str):
    found = run(*ASKED, option, value)
    assert found.exit_code == 2
    assert_wording(words(found).partition("Error: ")[2])


class TestBeginning:
    def test_the_override_names_purpose_reason_and_end(self, operator: MemoryOperator):
        run(*ASKED, "--for", "45m", "--reason", "kernel")
        said = override(operator)
        assert said is not None
        assert (said["state"], said["purpose"], said["reason"]) == ("Demoted", "Maintenance", "kernel")
        ends = datetime.fromisoformat(said["until"]) - operator.site.clock.now()
        assert timedelta(minutes=44) < ends < timedelta(minutes=46)

    def test_waiting_ends_when_the_broker_may_be_stopped(self, operator: MemoryOperator):
        found = run(*ASKED, "--wait")
        assert found.exit_code == 0
        assert_wording(found.output.splitlines()[-1])
        assert "leads 2 partitions, and is first in the replica order of 2 (LeadersMoving)" in words(found)
        assert leaders(operator) == 0
        assert {p.replicas[-1] for p in operator.site.cluster.partitions() if 2 in p.replicas} == {2}

    def test_without_waiting_the_operators_first_word_is_enough(self):
        found = run(*ASKED)
        assert found.exit_code == 0
        assert "kubectl wait --for=condition=Drained bh/main-2 -n default" in words(found)

    def test_a_second_time_only_moves_the_end(self, operator: MemoryOperator):
        run(*ASKED, "--wait")
        before = operator.site.cluster.mutations
        found = run(*ASKED, "--wait", "--for", "2h")
        assert (found.exit_code, operator.site.cluster.mutations) == (0, before)

    def test_an_override_that_has_ended_is_in_nobodys_way(self, operator: MemoryOperator):
        put_override(operator, state="Promoted", reason="well", until="2020-01-01T00:00:00Z")
        assert run(*ASKED, "--wait").exit_code == 0

    @pytest.mark.parametrize("state", ["Promoted", "Demoted"])
    def test_a_persons_other_word_is_not_overwritten(self, operator: MemoryOperator, state: str):
        put_override(operator, state=state, reason="mine")
        found = run(*ASKED)
        assert found.exit_code == 1
        assert_wording(words(found))


class TestWritesThatWouldBeRefused:
    @pytest.fixture(autouse=True)
    def short(self, operator: MemoryOperator) -> None:
        """A topic with as many replicas in sync as it needs, broker 2 among them."""
        operator.site.cluster.create_topic("pay", assignment=[(1, 2, 3)], min_isr=2)
        operator.site.cluster.shrink_isr(operator.site.cluster.partition("pay").name, 3)

    def test_waiting_names_partition_isr_minimum_and_remedy_and_ends_once_it_may(
        self, shift: Shift, operator: MemoryOperator
    ):
        name = operator.site.cluster.partition("pay").name
        shift.events[8] = [lambda: operator.site.cluster.join_isr(name, 3)]
        found = run(*ASKED, "--wait")
        assert "without broker 2 (pay-0: ISR [1, 2], min.insync.replicas 2): wait until other" in words(found)
        assert "(NoFaultTolerance)" in words(found)
        assert (found.exit_code, found.output.splitlines()[-1]) == (0, "broker 2 is drained; it is safe to stop")

    def test_a_wait_that_times_out_prints_what_blocks(self, operator: MemoryOperator):
        found = run(*ASKED, "--wait", "--timeout", "20s")
        assert found.exit_code == 3
        assert "blocked: 1 partitions would refuse acks=all writes without broker 2" in words(found)
        assert "bellwether drain --accept-unavailable-writes" in words(found)
        assert leaders(operator) == 0

    def test_it_may_be_accepted_also_later(self, operator: MemoryOperator):
        run(*ASKED, "--wait", "--timeout", "20s")
        found = run(*ASKED, "--wait", "--accept-unavailable-writes")
        assert found.exit_code == 0
        assert_wording(found.output.splitlines()[-1])
        assert "it is safe to stop" not in found.output
        run(*ASKED)
        said = override(operator)
        assert said is not None
        assert not said.get("acceptUnavailableWrites")


class TestHolding:
    def test_the_last_healthy_broker_is_refused_at_once(self, shift: Shift, operator: MemoryOperator):
        for broker in (1, 3):
            operator.site.cluster.kill(broker)
            operator.site.signals.say(broker, Reading.FAILING)
        shift.reconcile()
        found = run(*ASKED, "--wait", "--timeout", "1h")
        assert found.exit_code == 3
        assert "AnotherBrokerUnhealthy" in words(found)
        assert shift.waits < 10

    def test_a_partition_that_stays_is_named_with_its_remedy_and_the_way_back(self, operator: MemoryOperator):
        operator.site.cluster.create_topic("alone", assignment=[(2,)])
        found = run(*ASKED, "--wait", "--timeout", "30s")
        assert found.exit_code == 3
        assert "1 partitions would have no leader without broker 2 (alone-0)" in words(found)
        assert "(NoFaultTolerance)" in words(found)
        assert "to cancel: bellwether drain 2 --policy main -n default --end" in words(found)
        assert leaders(operator) == 1, "all others have moved"

    def test_waiting_outlasts_a_hold_that_passes(self, shift: Shift, operator: MemoryOperator):
        name = operator.site.cluster.partition("orders", 1).name
        for broker in (1, 3):
            operator.site.cluster.shrink_isr(name, broker)
        shift.events[6] = [lambda: operator.site.cluster.join_isr(name, 1)]
        found = run(*ASKED, "--wait")
        assert found.exit_code == 0
        assert "NoFaultTolerance" in words(found)
        assert leaders(operator) == 0

    @pytest.mark.parametrize(
        ("spec", "said"),
        [
            pytest.param({"mode": "Observe"}, "the policy is in mode Observe", id="observing"),
            pytest.param(
                {"suspend": True},
                "the policy is suspended: no leader moves until spec.suspend is false",
                id="suspended",
            ),
        ],
    )
    def test_a_policy_that_does_not_act_drains_no_broker(
        self, operator: MemoryOperator, spec: dict[str, object], said: str
    ):
        operator.change(**spec)
        found = run(*ASKED, "--wait")
        assert found.exit_code == 3
        assert f"not drained: {said}" in words(found)

    def test_a_silent_operator_is_distinguished_from_a_slow_drain(self, shift: Shift, operator: MemoryOperator):
        shift.asleep = True
        shift.events = {n: [lambda: operator.site.clock.advance(1)] for n in range(1, 400)}
        found = run(*ASKED, "--wait", "--timeout", "60s")
        assert found.exit_code == 3
        assert_wording(words(found))


class TestEnding:
    def test_the_broker_leads_again_once_it_is_well(self, shift: Shift, operator: MemoryOperator):
        before = {p.key: p.replicas for p in operator.site.cluster.partitions()}
        run(*ASKED, "--wait")
        operator.site.cluster.kill(2)
        operator.site.signals.say(2, Reading.FAILING)
        shift.reconcile()
        operator.site.cluster.revive(2)
        shift.events[shift.waits + 5] = [lambda: operator.site.signals.say(2, Reading.PASSING)]
        found = run(*ASKED, "--end", "--wait")
        assert found.exit_code == 0
        assert "Stabilizing" in words(found)
        assert_wording(found.output.splitlines()[-1])
        assert override(operator) is None
        for _ in range(5):
            shift.reconcile()
        assert {p.key: p.replicas for p in operator.site.cluster.partitions()} == before

    def test_leaders_that_come_back_in_waves_are_waited_for(self, shift: Shift, operator: MemoryOperator):
        operator.change(promotion={"stabilizationSeconds": 3, "waves": {"pauseSeconds": 5, "skipUpToLeaders": 0}})
        run(*ASKED, "--wait")
        found = run(*ASKED, "--end", "--wait")
        assert found.exit_code == 0
        assert "wave 1 of 3" in words(found)
        shift.reconcile()
        assert leaders(operator) == 2

    def test_without_waiting_it_is_enough_that_it_was_said(self):
        run(*ASKED)
        found = run(*ASKED, "--end")
        assert found.exit_code == 0
        assert_wording(words(found))

    def test_a_timeout_names_what_it_waits_for(self, operator: MemoryOperator):
        run(*ASKED, "--wait")
        operator.site.cluster.kill(2)
        found = run(*ASKED, "--end", "--wait", "--timeout", "20s")
        assert found.exit_code == 3
        assert "does not lead again after 20 s" in words(found)

    def test_nothing_to_end_is_no_mistake(self):
        found = run(*ASKED, "--end")
        assert found.exit_code == 0
        assert_wording(words(found))

    def test_an_override_of_another_purpose_is_left_alone(self, operator: MemoryOperator):
        put_override(operator, state="Demoted", reason="mine")
        found = run(*ASKED, "--end")
        assert found.exit_code == 1
        assert_wording(words(found))
        assert override(operator) is not None
