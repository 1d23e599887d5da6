"""``plan``, ``why``, ``elect`` and dry runs on the cluster of an operator in memory: what they say is what it does."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, CONFIG_MAPS
from bellwether.cli.main import main
from bellwether.controllers.policy_controller import PolicyController
from bellwether.core.signals import Override, Reading, SignalType
from bellwether.ports.errors import Terminal
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import MemoryOperator
from testkit.simulation.preview_fixture import lead_to_cluster_of

SETTLED = 3


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryOperator]:
    """An operator over three healthy brokers with six partitions."""
    made = MemoryOperator.well()
    lead_to_cluster_of(monkeypatch, made)
    yield made
    made.close()


def started(operator: MemoryOperator, **spec: object) -> PolicyController:
    loop = operator.make(**spec)
    operator.step(loop, SETTLED)
    return loop


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def document(*arguments: object) -> dict[str, object]:
    found = run(*arguments, "-o", "json")
    assert found.exit_code == 0, found.output
    parsed: dict[str, object] = json.loads(found.stdout)
    return parsed


def moved(operator: MemoryOperator) -> list[tuple[tuple[int, ...], int | None]]:
    return [(p.replicas, p.leader) for p in operator.site.cluster.partitions()]


def changes(operator: MemoryOperator) -> list[str]:
    """What was written to the API, apart from the Lease that the operator renews in the background."""
    return [write for write in operator.api.writes if not write.startswith("replace leases ")]


def override(operator: MemoryOperator, broker: int, state: str) -> None:
    said = {"state": state, "reason": "disk swap"}
    operator.api.merge(BROKER_HEALTHS, "default", f"main-{broker}", {"spec": {"override": said}})


def seen_by(operator: MemoryOperator, loop: PolicyController) -> None:
    """The operator sees the overrides of the API."""
    for health in operator.api.all(BROKER_HEALTHS):
        loop.signals.on_broker_health(health)
    for one in loop.signals.overrides():
        said: Override = one
        operator.site.signals.override(said.broker, said.state, said.reason)


def led_by_a_sick_broker(operator: MemoryOperator, **spec: object) -> None:
    """Broker 3 is demoted by a person, broker 1 by its signals, and broker 2 is sick and leads on."""
    loop = started(operator, **spec)
    override(operator, 3, "Demoted")
    seen_by(operator, loop)
    for broker in (1, 2):
        operator.site.signals.say(broker, Reading.FAILING)
        operator.step(loop, 60)


class TestPlan:
    def test_a_settled_cluster_has_nothing_to_move(self, operator: MemoryOperator):
        started(operator)
        found = run("plan")
        assert found.exit_code == 0
        assert_wording(found.output)

    def test_a_broken_link_is_printed_while_others_lead_for_it(self, operator: MemoryOperator):
        def lag(of_two: bool) -> None:
            for broker, other in ((1, 2), (2, 1), (3, None)):
                operator.site.signals.say(
                    broker,
                    Reading.PASSING,
                    type=SignalType.REPLICATION_LAG,
                    sources=["replication"],
                    broken_link_to=other if of_two else None,
                )

        loop = started(operator)
        lag(True)
        operator.step(loop, 30)
        assert_wording(run("plan").output)
        lag(False)
        operator.step(loop, 84)
        assert_wording(run("plan").output)
        assert "brokers 1 and 2" not in run("plan").output

    def test_in_observe_mode_it_shows_what_enforcing_would_do(self, operator: MemoryOperator):
        loop = started(operator, mode="Observe")
        operator.site.signals.say(2, Reading.FAILING)
        operator.step(loop, 30)
        before = moved(operator)
        found = document("plan")
        assert found["mode"] == "Observe"
        assert [one["broker"] for one in found["demoted"]] == [2]  # type: ignore[attr-defined]
        operator.change(mode="Enforce")
        operator.step(loop, SETTLED)
        assert moved(operator) != before
        by_name = {(m["topic"], m["partition"]): m for m in found["moves"]}  # type: ignore[attr-defined]
        for partition, (replicas, leader) in zip(operator.site.cluster.partitions(), before, strict=True):
            move = by_name.get((partition.topic, partition.index))
            foretold = (replicas, leader) if move is None else (tuple(move["target"]), move["nextLeader"])
            assert foretold == (partition.replicas, partition.leader)

    def test_a_policy_without_an_operator_is_noted(self, operator: MemoryOperator):
        operator.make()
        found = run("plan")
        assert_wording(found.output)


class TestDryRuns:
    @pytest.mark.parametrize("verb", ["demote", "drain"])
    def test_what_is_foretold_is_what_the_operator_then_does(self, operator: MemoryOperator, verb: str):
        loop = started(operator)
        writes = changes(operator)
        found = run(verb, 2, "--dry-run")
        assert found.exit_code == 0, found.output
        assert "broker 2 would be demoted" in found.output
        assert changes(operator) == writes
        led = sum(leader == 2 for _, leader in moved(operator))
        assert f"{led} leaders move" in found.output
        override(operator, 2, "Demoted")
        seen_by(operator, loop)
        operator.step(loop, SETTLED)
        assert all(leader != 2 for _, leader in moved(operator))

    def test_what_kafka_would_refuse_is_counted_and_not_promised(self, operator: MemoryOperator):
        started(operator)
        operator.site.cluster.unregister(3)
        found = run("demote", 1, "--dry-run")
        assert_wording(found.output)
        override(operator, 1, "Demoted")
        assert document("plan")["moves"] == []
        led = next(p for p in operator.site.cluster.partitions() if p.leader == 1)
        why = run("why", f"{led.topic}/{led.index}").output
        assert_wording(why)
        assert "the operator moves it now" not in why

    def test_a_drain_that_would_stop_writes_is_exit_status_3(self, operator: MemoryOperator):
        operator.site.cluster.create_topic("pair", assignment=[(2, 1)])
        operator.site.cluster.settings["pair"]["min.insync.replicas"] = "2"
        started(operator)
        found = run("drain", 2, "--dry-run")
        assert found.exit_code == 3
        assert "min.insync.replicas" in found.output

    def test_promote_and_release_show_the_way_back(self, operator: MemoryOperator):
        loop = started(operator)
        override(operator, 2, "Demoted")
        seen_by(operator, loop)
        operator.step(loop, SETTLED)
        for verb in ("promote", "release"):
            found = run(verb, 2, "--dry-run")
            assert_wording(found.output)
        assert_wording(found.output)

    def test_a_release_says_how_many_leaders_do_not_wait_for_their_wave(self, operator: MemoryOperator):
        led_by_a_sick_broker(operator, promotion={"waves": {"skipUpToLeaders": 0}})
        assert_wording(run("release", 3, "--dry-run").output)


class TestWhy:
    def test_the_first_of_its_own_order(self, operator: MemoryOperator):
        started(operator)
        partition = operator.site.cluster.partitions()[0]
        found = run("why", f"{partition.topic}/{partition.index}")
        assert found.exit_code == 0, found.output
        assert_wording(found.output)

    def test_a_demoted_home_is_named_with_what_ends_that(self, operator: MemoryOperator):
        home = next(p for p in operator.site.cluster.partitions() if p.leader == 2)
        loop = started(operator)
        override(operator, 2, "Demoted")
        seen_by(operator, loop)
        operator.step(loop, SETTLED)
        found = document("why", f"{home.topic}/{home.index}")
        assert found["leader"] != 2
        assert found["baseline"] == list(home.replicas)
        assert_wording(str(found["why"]))
        assert any("bellwether release 2" in change for change in found["changes"])  # type: ignore[attr-defined]

    def test_of_the_last_leader_only_what_works_is_offered_and_a_healthy_broker_first(self, operator: MemoryOperator):
        led_by_a_sick_broker(operator)
        (partition, *_) = operator.site.cluster.partitions()
        assert partition.leader == 2
        found = document("why", f"{partition.topic}/{partition.index}")
        assert_wording(str(found["why"]))
        first, second = found["changes"]  # type: ignore[misc]
        assert_wording(first)
        assert second.startswith("broker 1 can lead: ")
        assert "promote" not in second

    def test_a_suspended_policy_says_what_it_would_do_after_its_resume(self, operator: MemoryOperator):
        home = next(p for p in operator.site.cluster.partitions() if p.leader == 2)
        started(operator, suspend=True)
        override(operator, 2, "Demoted")
        found = document("why", f"{home.topic}/{home.index}")
        assert found["replicas"][0]["obstacle"] == "it would be demoted (OverrideDemoted)"  # type: ignore[index]
        (move, *_) = found["changes"]  # type: ignore[misc]
        assert_wording(move)

    def test_a_partition_with_one_replica_has_nothing_that_would_change_its_leader(self, operator: MemoryOperator):
        operator.site.cluster.create_topic("alone", assignment=[(2,)])
        started(operator)
        assert_wording(document("why", "alone/0")["changes"])

    def test_a_move_that_is_held_is_named_with_its_reason(self, operator: MemoryOperator):
        operator.site.cluster.create_topic("alone", assignment=[(2,)])
        loop = started(operator)
        override(operator, 2, "Demoted")
        seen_by(operator, loop)
        operator.step(loop, SETTLED)
        found = document("why", "alone/0")
        assert found["blocked"]["reason"] == "OnlyReplica"  # type: ignore[index]
        assert_wording(str(found["why"]))

    def test_a_partition_out_of_scope_says_so_and_stays_with_a_demoted_broker(self, operator: MemoryOperator):
        operator.site.cluster.create_topic("private", assignment=[(2, 1, 3)])
        loop = started(operator, scope={"excludedTopics": ["priv*"]})
        found = run("why", "private/0")
        assert_wording(found.output)
        assert "bellwether demote" not in found.output
        override(operator, 2, "Demoted")
        seen_by(operator, loop)
        operator.step(loop, SETTLED)
        assert operator.site.cluster.partition("private").leader == 2
        assert not any(p.leader == 2 for p in operator.site.cluster.partitions() if p.topic != "private")
        blocked = document("why", "private/0")
        assert (blocked["inScope"], blocked["blocked"]["reason"]) == (False, "OutOfScope")  # type: ignore[index]
        plan = run("plan").output
        assert_wording(plan)

    @pytest.mark.parametrize(
        ("partition", "status", "said"),
        [
            ("orders", 2, "is not TOPIC-PARTITION: use a value such as orders-0"),
            ("orders/x", 2, "is not TOPIC-PARTITION"),
            ("nosuch/0", 1, "has no topic nosuch: check the name"),
            ("orders/99", 1, "topic orders has no partition 99: it has 0 to"),
        ],
    )
    def test_an_unknown_partition_is_one_sentence(
        self, operator: MemoryOperator, partition: str, status: int, said: str
    ):
        started(operator)
        found = run("why", partition)
        assert (found.exit_code, said in " ".join(found.output.split())) == (status, True), found.output


class TestElect:
    def displaced(self, operator: MemoryOperator) -> list[str]:
        """Broker 2 restarts: what it led is led by others afterwards, though nothing is demoted."""
        led = [f"{p.topic}/{p.index}" for p in operator.site.cluster.partitions() if p.leader == 2]
        operator.site.cluster.kill(2)
        operator.site.cluster.revive(2)
        return led

    def test_a_dry_run_lists_the_elections_and_changes_nothing(self, operator: MemoryOperator):
        started(operator)
        names, before = self.displaced(operator), moved(operator)
        found = run("elect", "--dry-run")
        assert found.exit_code == 0
        assert [line.split()[0] for line in found.output.splitlines()[1:]] == names
        assert moved(operator) == before

    def test_the_preferred_leaders_lead_again(self, operator: MemoryOperator):
        started(operator)
        names = self.displaced(operator)
        found = run("elect")
        assert (found.exit_code, f"{len(names)} leaders elected" in found.output) == (0, True), found.output
        assert all(leader == replicas[0] for replicas, leader in moved(operator))
        assert "nothing to elect" in run("elect").output

    def test_the_elections_are_in_the_audit_log(self, operator: MemoryOperator):
        started(operator)
        names = self.displaced(operator)
        done = run("elect", "-o", "json")
        assert [row["partition"] for row in json.loads(done.stdout)] == names
        shown = run("history").output
        assert "bellwether elect by " in shown
        assert f"planned: 0 reorders, {len(names)} elections" in shown
        assert f"result: 0 reordered, {len(names)} elected" in shown

    def test_without_the_right_to_write_the_audit_log_leaders_are_elected_and_it_is_said(
        self, operator: MemoryOperator
    ):
        started(operator)
        names = self.displaced(operator)
        operator.api.refuse("create", CONFIG_MAPS, Terminal("admission policy x: written by the operator only"))
        done = run("elect")
        assert (done.exit_code, f"{len(names)} leaders elected" in done.stderr) == (0, True), done.output
        said = "the elections are not in the policy's audit log: admission policy x: written by the operator only"
        assert said in done.stderr

    def test_a_broker_that_is_not_healthy_is_not_elected(self, operator: MemoryOperator):
        loop = started(operator, mode="Observe")
        self.displaced(operator)
        operator.site.signals.say(2, Reading.FAILING)
        operator.step(loop, 30)
        found = run("elect")
        assert (found.exit_code, "nothing to elect" in found.output) == (0, True), found.output
        assert all(leader != 2 for _, leader in moved(operator))

    def test_moves_of_the_operator_come_first(self, operator: MemoryOperator):
        started(operator)
        self.displaced(operator)
        override(operator, 3, "Demoted")
        before = moved(operator)
        found = run("elect")
        assert (found.exit_code, moved(operator)) == (3, before)
        assert_wording(" ".join(found.output.split()))

    def test_an_unknown_topic_is_refused(self, operator: MemoryOperator):
        started(operator)
        found = run("elect", "--topic", "nosuch")
        assert (found.exit_code, "has no topic nosuch" in found.output) == (1, True)
