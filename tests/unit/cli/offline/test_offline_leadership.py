"""By hand no policy is known: what becomes of the orders that one keeps for the sake of racks, and who contradicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters import undo_record_codec
from bellwether.cli.main import main
from bellwether.cli.offline.offline_leadership import MAX_ABORTS
from bellwether.core.settings.placement import Placement, Preference
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryMover, MemoryReader
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.offline_fixture import lead_to
from testkit.simulation.operators import POLICY, Operator

IN_A = replace(POLICY, placement=Placement(Preference(("a",))))
ORDERS = [(1, 2), (2, 1), (3, 4), (4, 3), (3, 1)]
IN_RACK_A = [(1, 2), (1, 2), (3, 4), (3, 4), (3, 1)]
NOTICE = "because this command reads no policy"


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> MemorySite:
    """Brokers 1 and 3 in rack a, 2 and 4 in rack b; two of five partitions are at home in b."""
    made = lead_to(monkeypatch, MemorySite(MemoryCluster({1: "a", 2: "b", 3: "a", 4: "b"})))
    made.cluster.create_topic("orders", assignment=ORDERS)
    return made


def orders(made: MemorySite) -> list[tuple[int, ...]]:
    return [p.replicas for p in made.cluster.partitions()]


def run(verb: str, broker: int, record: Path, *more: str) -> Result:
    options = ["--record", str(record), "--bootstrap", "kafka.example:9092", *more]
    return CliRunner().invoke(main, [verb, str(broker), *options])


def exported(operator: Operator, path: Path) -> Path:
    """The operator's undo record in a file, as ``bellwether undo-record export`` writes it."""
    assert operator.memory is not None
    path.write_bytes(undo_record_codec.export_record(operator.memory.record))
    return path


def test_without_a_policy_leaders_go_to_any_rack_and_come_back(kafka: MemorySite, tmp_path: Path):
    record = tmp_path / "undo.json"
    demoted = run("demote", 1, record)
    assert orders(kafka) == [(2, 1), (2, 1), (3, 4), (4, 3), (3, 1)]
    promoted = run("promote", 1, record)
    assert orders(kafka) == ORDERS
    assert NOTICE not in demoted.output + promoted.output


def test_an_unreachable_cluster_leaves_no_lock_behind(kafka: MemorySite, tmp_path: Path):
    for broker in (1, 2, 3, 4):
        kafka.cluster.kill(broker)
    assert run("demote", 1, tmp_path / "undo.json").exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_leaders_are_moved_after_one_full_read_and_a_second_one_confirms_without_a_wait(
    kafka: MemorySite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    record, effects = tmp_path / "undo.json", list[str]()

    def watch(port: type, method: str) -> None:
        inner = getattr(port, method)

        def watched(self: object, *asked: object) -> object:
            effects.append(method)
            return inner(self, *asked)

        monkeypatch.setattr(port, method, watched)

    watch(MemoryReader, "read")
    watch(MemoryMover, "elect")
    began = kafka.clock.monotonic()
    for verb in ("demote", "promote"):
        assert run(verb, 1, record).exit_code == 0
        assert effects == ["read", "elect", "read"]
        effects.clear()
    assert kafka.clock.monotonic() == began
    assert orders(kafka) == ORDERS


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_racks_keep_away_in_an_exported_record_goes_back_and_is_announced(
    kafka: MemorySite, tmp_path: Path, dry_run: bool
):
    operator = Operator(kafka, IN_A).reconciles(5)
    assert orders(kafka) == IN_RACK_A
    found = run("demote", 1, exported(operator, tmp_path / "undo.json"), *(["--dry-run"] if dry_run else []))
    # Of the two that are away one is on broker 1, which explains it.
    assert "1 replica orders were changed without a demoted broker" in found.output
    assert NOTICE in found.output
    assert orders(kafka) == (IN_RACK_A if dry_run else [(2, 1), (2, 1), (3, 4), (4, 3), (3, 1)])


def test_what_a_demotion_keeps_away_is_not_announced(kafka: MemorySite, tmp_path: Path):
    record = tmp_path / "undo.json"
    run("demote", 1, record)
    assert NOTICE not in run("demote", 3, record).output
    assert NOTICE not in run("promote", 1, record).output


def test_an_operator_at_work_gives_a_broker_back_what_the_racks_want_it_to_lead(kafka: MemorySite, tmp_path: Path):
    operator = Operator(kafka, IN_A).reconciles(5)
    run("demote", 1, tmp_path / "undo.json")
    assert kafka.cluster.snapshot().leaders()[1] == 0
    operator.reconciles(30)
    assert orders(kafka) == IN_RACK_A
    assert kafka.cluster.snapshot().leaders()[1] == 2


def test_an_operator_whom_no_rack_matters_leaves_it(kafka: MemorySite, tmp_path: Path):
    operator = Operator(kafka).reconciles(5)
    run("demote", 1, tmp_path / "undo.json")
    operator.reconciles(30)
    assert kafka.cluster.snapshot().leaders()[1] == 0
    run("promote", 1, tmp_path / "undo.json")
    operator.reconciles(30)
    assert orders(kafka) == ORDERS


def test_next_to_a_suspended_policy_it_lasts_and_leaves_nothing(kafka: MemorySite, tmp_path: Path):
    operator = Operator(kafka, IN_A).reconciles(5)
    operator.policy = replace(IN_A, suspend=True)
    run("demote", 1, tmp_path / "undo.json")
    operator.reconciles(30)
    assert kafka.cluster.snapshot().leaders()[1] == 0
    run("promote", 1, tmp_path / "undo.json")
    operator.policy = IN_A
    operator.reconciles(30)
    assert orders(kafka) == IN_RACK_A
    assert operator.memory is not None
    baselines = {key.partition: e.baseline for key, e in operator.memory.record.entries.items()}
    assert baselines == {1: (2, 1), 3: (4, 3)}


def test_a_service_that_takes_elections_and_moves_nothing_is_not_asked_twenty_times(kafka: MemorySite, tmp_path: Path):
    kafka.cluster.elect_preferred = lambda _: True  # type: ignore[method-assign]
    found = run("demote", 1, tmp_path / "undo.json")
    assert found.exit_code == 3
    assert "leaders elected" not in found.output.replace(" 0 leaders elected", "")
    assert found.output.count("0 leaders elected") <= MAX_ABORTS + 1


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_service_without_elections_is_promised_nothing(
    kafka: MemorySite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
):
    whole = kafka.cluster.snapshot
    lacking = "this Kafka service does not offer ElectLeaders"
    monkeypatch.setattr(kafka.cluster, "snapshot", lambda: replace(whole(), immovable=lacking))
    found = run("demote", 1, tmp_path / "undo.json", *more)
    assert found.exit_code == 3
    assert lacking in " ".join(found.output.split())
    assert orders(kafka) == ORDERS
