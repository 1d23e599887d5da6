"""``rebalance`` as a person meets it: help, mistakes, a plan by hand and through the operator, exit statuses."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES, POLICIES
from bellwether.cli.main import main
from bellwether.simulation.memory_kafka import MemoryMover, MemoryReader, MemoryRoute
from bellwether_load.cli import offline_rebalance, plan_request
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import Rows, write_round
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.loads.sample_rounds import read_table
from testkit.messages import assert_wording
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operator_fixture import MemoryOperator
from testkit.simulation.rebalance_fixture import Planner, desk_of
from testkit.values.builders import site

BOOTSTRAP = ["--bootstrap", "kafka.example:9092"]
DONE, FAILED, MISUSED, HELD = 0, 1, 2, 3


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["rebalance", *(str(a) for a in arguments)])


def words(found: Result) -> str:
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", found.output).split())


def digest_in(found: Result) -> str:
    match = re.search(r"plan ([0-9a-f]{32})", found.output)
    assert match is not None, found.output
    return match[1]


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "remedy"),
        [
            (["--policy", "main", *BOOTSTRAP], "set either --policy NAME"),
            (BOOTSTRAP, "--bootstrap requires --store URI"),
            ([*BOOTSTRAP, "--store", "/s"], "set --record FILE"),
            (
                [*BOOTSTRAP, "--store", "/s", "--dry-run", "--approve", "x"],
                "--approve and --dry-run exclude each other",
            ),
            (["--policy", "main", "--approve", "x"], "--approve: requires --bootstrap"),
            (
                ["--policy", "main", "--store", "/s", "-f", "lr.yaml"],
                "--store, --filename: requires --bootstrap",
            ),
        ],
    )
    def test_a_misuse_is_refused_with_the_remedy(self, arguments: list[str], remedy: str):
        found = run(*arguments)
        assert found.exit_code == MISUSED
        assert remedy in words(found)

    def test_a_file_of_a_password_is_read_and_no_password_is_an_argument(self):
        assert "--sasl-password " not in run("--help").output


class Hand:
    """A cluster in memory that every bootstrap leads to, a store, and a planner; without waiting."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site: MemorySite = site(3, {"orders": 8})
        self.folder = folder
        (folder / "store").mkdir()
        self.planner = Planner(Store.open(str(folder / "store")), policy=("offline", "rebalance"))
        made = self.site

        def work(_inputs: Any, name: str, *_: object) -> None:
            self.planner.work(name)

        monkeypatch.setattr(offline_rebalance, "BrokerPool", lambda *_: MemoryRoute(made.cluster))
        monkeypatch.setattr(offline_rebalance, "KafkaReader", lambda route: MemoryReader(made.cluster, route))
        monkeypatch.setattr(offline_rebalance, "KafkaMover", lambda route: MemoryMover(made.cluster, 2.0, route=route))
        monkeypatch.setattr(offline_rebalance, "SystemClock", lambda: made.clock)
        self.compute = offline_rebalance._work
        monkeypatch.setattr(offline_rebalance, "_work", work)

    def run(self, *more: object, **spec: object) -> Result:
        body = {"apiVersion": "bellwether.dev/v1alpha1", "kind": "LeaderRebalance", "metadata": {"name": "main"}}
        body["spec"] = {"policy": "main", "waves": {"partitions": 2, "pauseSeconds": 5}, **spec}
        file = self.folder / "rebalance.yaml"
        file.write_text(json.dumps(body))
        return run(*BOOTSTRAP, "--store", self.folder / "store", "-f", file, *more)

    @property
    def record(self) -> list[object]:
        return ["--record", self.folder / "undo.json"]

    def led(self) -> dict[int, int]:
        return self.site.cluster.snapshot().leaders()


@pytest.fixture
def hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hand:
    return Hand(tmp_path, monkeypatch)


class TestByHand:
    def test_a_mistyped_store_is_refused_and_not_created(self, hand: Hand):
        (hand.folder / "store").rmdir()
        result = hand.run("--dry-run")
        assert result.exit_code == 1
        assert f"{hand.folder}/store does not exist: correct its URI, or start the sampler" in result.output
        assert not (hand.folder / "store").exists()

    def test_a_dry_run_shows_the_plan_and_moves_nothing(self, hand: Hand):
        before = hand.site.cluster.mutations
        found = hand.run("--dry-run")
        assert found.exit_code == DONE, found.output
        assert_wording(found.output.replace(str(hand.folder), "FOLDER"))
        assert "verified from its inputs" in found.output
        assert "The busiest broker goes from 5.50 kB/s to 4.72 kB/s" in found.output
        assert hand.site.cluster.mutations == before
        assert not (hand.folder / "undo.json").exists()

    def test_too_little_evidence_gives_no_proposal(self, hand: Hand):
        hand.planner.rates = lambda one: None if one.partition == 0 else 100.0
        found = hand.run("--dry-run")
        assert found.exit_code == HELD
        assert "no proposal: 87.5 % of the bytes measured, 95 % needed" in words(found)
        assert "busiest broker" not in found.output
        digest = hand.planner.store.list("plans")[0].path.split("/")[1]
        assert hand.run(*hand.record, "--approve", digest).exit_code == HELD
        allowed = hand.run("--dry-run", minimumMeasuredPercent=80)
        assert (allowed.exit_code, "7 of 8 partitions, 87.5 % of the bytes" in words(allowed)) == (DONE, True)

    def test_the_plan_is_applied_in_waves_and_its_end_printed(self, hand: Hand):
        found = hand.run(*hand.record, "--yes")
        assert found.exit_code == DONE, found.output
        assert "2 of 3 partitions applied, 0 skipped; 5 s between waves" in found.output
        assert "Done: 3 of 3 partitions have the plan's order" in found.output
        assert all(p.leader == p.replicas[0] for p in hand.site.cluster.partitions())

    def test_without_approval_nothing_moves_and_the_command_is_printed(self, hand: Hand):
        before = hand.site.cluster.mutations
        found = hand.run(*hand.record)
        assert found.exit_code == DONE
        digest = digest_in(found)
        assert_wording(found.output.replace(str(hand.folder), "FOLDER"))
        assert hand.site.cluster.mutations == before
        applied = hand.run(*hand.record, "--approve", digest)
        assert applied.exit_code == DONE, applied.output
        assert "Done: 3 of 3" in applied.output

    def test_a_run_that_was_broken_off_is_gone_on_with_by_the_digest(self, hand: Hand, monkeypatch: pytest.MonkeyPatch):
        digest = digest_in(hand.run("--dry-run"))
        sleep = hand.site.clock.sleep

        def broken(_seconds: float) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(hand.site.clock, "sleep", broken)
        found = hand.run(*hand.record, "--approve", digest)
        assert found.exit_code == FAILED
        assert_wording(found.output)
        monkeypatch.setattr(hand.site.clock, "sleep", sleep)
        again = hand.run(*hand.record, "--approve", digest)
        assert again.exit_code == DONE, again.output
        assert_wording(again.output)

    def test_a_plan_without_moves_is_reported(self, hand: Hand):
        hand.run(*hand.record, "--yes")
        found = hand.run(*hand.record, "--yes")
        assert found.exit_code == DONE
        assert "the plan moves nothing" in found.output

    def test_an_unknown_plan_is_refused(self, hand: Hand):
        found = hand.run(*hand.record, "--approve", "0123456789abcdef")
        assert found.exit_code == FAILED
        assert "plan 0123456789abcdef is not in the store any more" in words(found)

    def test_samples_become_a_verified_plan_in_this_process(self, hand: Hand, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(offline_rebalance, "_work", hand.compute)
        led = sorted(hand.site.cluster.partitions(), key=lambda p: (p.topic, p.index))
        for minute in range(40):
            sizes = [minute * 10_000 // (1 + p.index) for p in led]
            at = hand.site.clock.now() - timedelta(minutes=40 - minute)
            keys = [p.topic for p in led], [p.topic_id for p in led], [p.index for p in led]
            leaders = [p.leader or 1 for p in led], [0] * len(led)
            unknown = [None] * len(led)
            write_round(hand.planner.store, Rows("memory-cluster", at, *keys, *leaders, sizes, sizes, unknown, unknown))
        found = hand.run("--dry-run", minimumHours=0)
        assert found.exit_code == DONE, found.output
        assert "verified from its inputs" in found.output
        assert "8 of 8 partitions, 100 % of the bytes" in words(found)

    def test_a_store_without_samples_gives_no_plan(self, hand: Hand, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(offline_rebalance, "_work", hand.compute)
        found = hand.run("--dry-run")
        assert found.exit_code == FAILED
        assert_wording(words(found))

    def test_what_is_asked_for_reaches_the_problem(self, hand: Hand):
        capacities = [{"brokerId": 2, "capacity": 300}]
        hand.run("--dry-run", objective={"capacities": capacities, "maxMoves": 1, "statistic": "Peak"})
        store = hand.planner.store
        path = next(f.path for f in store.list("problems") if f.path.endswith("problem.json"))
        said = store.read_bytes(path).decode()
        assert '"capacity": 300' in said
        assert '"maxMoves": 1' in said
        assert '"statistic": "Peak"' in said

    def test_a_file_that_is_no_rebalance_is_refused(self, hand: Hand):
        found = hand.run("--dry-run", minimumHours=169)
        assert found.exit_code == FAILED
        assert "--filename: " in words(found)
        assert "spec.minimumHours" in words(found)

    def test_skipped_partitions_are_printed_and_set_the_exit_status(self, hand: Hand):
        hand.site.cluster.create_topic("many", assignment=[(1, 2, 3)] * 12)
        hand.planner.rates = lambda _: 100.0
        digest = digest_in(hand.run("--dry-run"))
        moved = read_table(hand.planner.store, f"plans/{digest}/moves/part-00000.parquet").to_pylist()
        assert len(moved) >= 6
        one = next(m for m in moved if m["topic"] == "many" and m["to_leader"] == 2)
        hand.site.cluster.foreign_reorder(hand.site.cluster.partition("many", one["partition"]).name, (3, 2, 1))
        found = hand.run(*hand.record, "--approve", digest)
        assert found.exit_code == HELD, found.output
        assert_wording(words(found))
        assert f"many-{one['partition']}: ChangedSincePlan" in found.output
        assert_wording(found.output)


class Served:
    """An operator that works while a command waits: steps of its loop and its desk, in a thread."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **spec: Any) -> None:
        self.operator = MemoryOperator(site=site(3, {"orders": 8}))
        self.operator.site.well()
        self.desks: list[Any] = []
        self.planner = Planner(Store.open(str(folder)))
        self.operator.desk = desk_of(self.planner, self.operator.site.clock, self.desks)
        waves = {"partitions": 2, "pauseSeconds": 0}
        self.loop = self.operator.make(rebalance={"waves": waves, **spec})
        self.operator.api.serve_commands(monkeypatch)
        monkeypatch.setattr(plan_request, "POLL_SECONDS", 0.01)
        self._stop_requested = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while not self._stop_requested.wait(0.005):
            self.operator.step(self.loop)
            while self.desks and self.desks[-1].step():
                pass

    def annotations(self) -> dict[str, str]:
        """Those of the LeaderRebalance."""
        return dict(self._rebalance()["metadata"].get("annotations") or {})

    def status(self) -> dict[str, Any]:
        """That of the LeaderRebalance."""
        return dict(self._rebalance()["status"])

    def _rebalance(self) -> dict[str, Any]:
        return self.operator.api.get(LEADER_REBALANCES, "default", api_objects.LOADS)

    def __enter__(self) -> Served:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_requested.set()
        self._thread.join()
        self.operator.close()


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    with Served(tmp_path, monkeypatch) as made:
        yield made


class TestThroughTheOperator:
    @pytest.mark.usefixtures("served")
    def test_a_plan_is_asked_for_shown_and_waits_for_approval(self):
        found = run("--policy", "main")
        assert found.exit_code == DONE, found.output
        digest = digest_in(found)
        assert "The busiest broker goes from 5.50 kB/s to 4.72 kB/s" in found.output
        assert f"bellwether approve {digest} --policy main -n default" in words(found)

    @pytest.mark.usefixtures("served")
    def test_the_digest_approves_and_the_end_is_printed(self):
        digest = digest_in(run("--policy", "main"))
        found = CliRunner().invoke(main, ["approve", digest, "--policy", "main"])
        assert found.exit_code == DONE, found.output
        assert f"plan {digest} is approved" in found.output
        assert "Done: 3 of 3 partitions have the plan's order" in found.output

    @pytest.mark.usefixtures("served")
    def test_with_yes_all_of_it_happens(self):
        found = run("--policy", "main", "--yes")
        assert found.exit_code == DONE, found.output
        assert "Done: 3 of 3 partitions have the plan's order" in found.output

    def test_a_dry_run_shows_the_plan_and_approves_nothing(self, served: Served):
        found = run("--policy", "main", "--dry-run", "--yes")
        digest = digest_in(found)
        assert (found.exit_code, f"bellwether approve {digest}" in words(found)) == (DONE, True)
        again = CliRunner().invoke(main, ["approve", digest, "--dry-run"])
        assert (again.exit_code, f"plan {digest}:" in again.output) == (DONE, True)
        assert "bellwether.dev/approve-plan" not in served.annotations()

    def test_a_policy_that_approves_by_itself_has_no_dry_run(self, served: Served):
        served.operator.change(rebalance={"approval": "Automatic"})
        found = run("--policy", "main", "--dry-run")
        assert (found.exit_code, "spec.approval: Automatic" in words(found)) == (FAILED, True)
        assert "bellwether.dev/rebalance" not in served.annotations()

    def test_another_digest_is_refused_before_anything_is_approved(self, served: Served):
        digest = digest_in(run("--policy", "main"))
        found = CliRunner().invoke(main, ["approve", "f" * 32, "--policy", "main"])
        assert found.exit_code == FAILED
        assert_wording(words(found).replace(digest, "DIGEST"))
        assert "bellwether.dev/approve-plan" not in served.annotations()

    def test_a_small_improvement_is_printed_and_sets_the_exit_status(self, served: Served):
        served.operator.change(rebalance={"minimumImprovementPercent": 99})
        found = run("--policy", "main")
        assert found.exit_code == HELD
        assert "less than spec.minimumImprovementPercent (99)" in words(found)

    def test_a_policy_without_enough_evidence_gets_no_proposal(self, served: Served):
        served.planner.rates = lambda one: None if one.partition == 0 else 100.0
        found = run("--policy", "main")
        assert found.exit_code == HELD
        assert "no proposal: 87.5 % of the bytes measured, 95 % needed" in words(found)
        assert served.status()["reason"] == "TooLittleMeasured"

    def test_a_failed_job_is_printed(self, served: Served):
        served.planner.fails = "the history is empty"
        found = run("--policy", "main")
        assert found.exit_code == HELD
        assert "Failed: the history is empty" in found.output

    def test_a_store_that_is_not_allowed_ends_the_wait_with_those_that_are(self, served: Served):
        served.operator.change(rebalance={"store": "private"})
        found = run("--policy", "main")
        assert found.exit_code == FAILED
        said = "spec.store is 'private', but LeaderRebalances in namespace default may only use default"
        assert said in words(found)

    def test_a_timeout_prints_where_to_look(self, served: Served):
        served.planner.looks = 10**9
        found = run("--policy", "main", "--wait", 1)
        assert found.exit_code == HELD
        assert "not finished within 1 s: see `bellwether status --policy main -n default`" in words(found)


def test_a_policy_without_rebalance_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch):
    api = MemoryApi()
    api.put(POLICIES, api_objects.policy())
    api.serve_commands(monkeypatch)
    found = run("--policy", "main")
    assert found.exit_code == FAILED
    assert_wording(words(found))


def test_a_policy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch):
    MemoryApi().serve_commands(monkeypatch)
    found = run("--policy", "main")
    assert found.exit_code == FAILED
    assert_wording(words(found))
