"""Several brokers and whole racks in one command, through the operator and by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS
from bellwether.cli.main import main
from bellwether.core.signals import Reading
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.messages import assert_wording
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.offline_fixture import lead_to
from testkit.simulation.operator_fixture import MemoryOperator

RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
ORDERS = [(1, 3, 5), (2, 4, 5), (3, 5, 1), (4, 5, 2), (5, 1, 3)]


def made_of_racks() -> MemorySite:
    made = MemorySite(MemoryCluster(RACKS))
    made.cluster.create_topic("orders", assignment=ORDERS)
    return made


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryOperator]:
    made = MemoryOperator(made_of_racks())
    for broker in RACKS:
        made.site.signals.say(broker, Reading.PASSING)
    made.step(made.make(), 3)
    made.api.serve_commands(monkeypatch)
    yield made
    made.close()


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def overridden(operator: MemoryOperator) -> dict[int, str]:
    healths = operator.api.all(BROKER_HEALTHS)
    return {h["spec"]["brokerId"]: h["spec"]["override"]["state"] for h in healths if h["spec"].get("override")}


def test_brokers_and_racks_are_demoted_and_released_together(operator: MemoryOperator):
    found = run("demote", 5, "--rack", "a", "--reason", "power", "--wait", 0)
    assert found.exit_code == 0, found.output
    assert overridden(operator) == {1: "Demoted", 2: "Demoted", 5: "Demoted"}
    assert_wording(" ".join(found.output.split()))
    found = run("release", "--rack", "a", "--rack", "c", "--wait", 0)
    assert (found.exit_code, overridden(operator)) == (0, {}), found.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["1", "9"], "has no broker 9; it has: 1, 2, 3, 4, 5"),
        (["1", "--rack", "z"], "has no broker in rack z; its racks: a, b, c"),
    ],
)
def test_one_unknown_name_leaves_all_brokers_as_they_are(operator: MemoryOperator, arguments: list[str], said: str):
    found = run("demote", *arguments)
    assert (found.exit_code, said in " ".join(found.output.split())) == (1, True), found.output
    assert overridden(operator) == {}


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> MemorySite:
    return lead_to(monkeypatch, made_of_racks())


def test_a_rack_is_demoted_by_hand_and_promoted(kafka: MemorySite, tmp_path: Path):
    by_hand = ["--bootstrap", "kafka.example:9092", "--record", tmp_path / "undo.json"]
    found = run("demote", "--rack", "a", *by_hand)
    assert found.exit_code == 0, found.output
    assert {p.leader for p in kafka.cluster.partitions()}.isdisjoint({1, 2})
    assert run("promote", 1, 2, *by_hand).exit_code == 0
    assert [p.replicas for p in kafka.cluster.partitions()] == ORDERS
    unknown = run("demote", "--rack", "z", *by_hand)
    assert unknown.exit_code == 1
    assert_wording(unknown.output)
