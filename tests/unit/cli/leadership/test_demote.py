"""``demote``, ``promote`` and ``release`` as a person meets them: help, mistakes, exit statuses, no secret."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bellwether.cli.main import main
from bellwether.cli.offline import manual_demotion
from testkit.messages import assert_wording
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.offline_fixture import Route, lead_to
from testkit.values.builders import name, site
from testkit.values.security_settings import client_properties

BOOTSTRAP = ["--bootstrap", "kafka.example:9092"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def words(found: Result) -> str:
    """The output on one line, as the terminal's width breaks it anywhere."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", found.output).split())


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> MemorySite:
    """Every bootstrap leads to one simulated cluster, and nothing waits."""
    return lead_to(monkeypatch, site())


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="no broker"),
        pytest.param(["1", "--policy", "p", "--record", "r"], id="both"),
        pytest.param(["1", "--record", "r"], id="no bootstrap"),
        pytest.param(["1", "--policy", "p", *BOOTSTRAP], id="bootstrap and policy"),
        pytest.param(["1", "--policy", "p", "--for", "soon"], id="soon"),
        pytest.param(["1", "--policy", "p", "--for", "9" * 20 + "d"], id="for ever"),
        pytest.param(["1", "--record", "r", *BOOTSTRAP, "--for", "1h"], id="nothing would end it"),
        pytest.param(["1", "--record", "r", "--bootstrap", "kafka"], id="a bootstrap without a port"),
        pytest.param(["1", "--record", "r", *BOOTSTRAP, "--command-config", "missing.properties"], id="no file"),
    ],
)
@pytest.mark.parametrize("verb", ["demote", "promote"])
def test_a_mistake_is_answered_with_the_option_and_the_remedy(verb: str, arguments: Sequence[str]):
    found = run(verb, *arguments)
    assert found.exit_code == 2
    assert_wording(words(found).partition("Error: ")[2])


def test_promoting_needs_the_record_that_demoting_wrote(kafka: MemorySite, tmp_path: Path):
    found = run("promote", 1, "--record", tmp_path / "none.json", *BOOTSTRAP)
    assert found.exit_code == 2
    assert "does not exist: use the file that `bellwether demote` wrote" in words(found)


class TestByHand:
    def test_demoting_and_promoting_are_each_others_inverse(self, kafka: MemorySite, tmp_path: Path):
        before = [p.replicas for p in kafka.cluster.partitions()]
        record = tmp_path / "undo.json"
        found = run("demote", 1, "--record", record, *BOOTSTRAP)
        assert (found.exit_code, found.exception) == (0, None)
        assert_wording(found.output)
        assert kafka.cluster.snapshot().leaders()[1] == 0
        assert record.exists()
        found = run("promote", 1, "--record", record, *BOOTSTRAP)
        assert found.exit_code == 0
        assert [p.replicas for p in kafka.cluster.partitions()] == before
        assert kafka.cluster.snapshot().leaders()[1] == 2

    def test_a_dry_run_shows_the_plan_and_changes_nothing(self, kafka: MemorySite, tmp_path: Path):
        before = kafka.cluster.mutations
        found = run("demote", 1, "--record", tmp_path / "undo.json", *BOOTSTRAP, "--dry-run")
        assert found.exit_code == 0
        assert_wording(found.output)
        assert kafka.cluster.mutations == before
        assert list(tmp_path.iterdir()) == []

    def test_what_is_held_back_is_named_and_is_exit_status_3(self, kafka: MemorySite, tmp_path: Path):
        kafka.cluster.create_topic("alone", assignment=[(1,)])
        found = run("demote", 1, "--record", tmp_path / "undo.json", *BOOTSTRAP)
        assert found.exit_code == 3
        assert "1 blocked, OnlyReplica" in found.output
        assert "alone-0" in found.output
        assert kafka.cluster.snapshot().leaders()[1] == 1

    def test_an_unknown_broker_is_refused_with_the_known_ones(self, kafka: MemorySite, tmp_path: Path):
        before = kafka.cluster.mutations
        found = run("demote", 9, "--record", tmp_path / "undo.json", *BOOTSTRAP)
        assert found.exit_code == 1
        assert_wording(found.output)
        assert kafka.cluster.mutations == before

    def test_promoting_who_is_not_demoted_says_so(self, kafka: MemorySite, tmp_path: Path):
        record = tmp_path / "undo.json"
        run("demote", 1, "--record", record, *BOOTSTRAP)
        found = run("promote", 2, "--record", record, *BOOTSTRAP)
        assert "broker 2 is not demoted" in found.output
        assert kafka.cluster.snapshot().leaders()[1] == 0

    def test_a_cluster_that_does_not_answer_is_exit_status_1(self, kafka: MemorySite, tmp_path: Path):
        for broker in kafka.cluster.brokers:
            kafka.cluster.freeze(broker)
        found = run("demote", 1, "--record", tmp_path / "undo.json", *BOOTSTRAP)
        assert found.exit_code == 1
        assert found.output.startswith("Error: ") or "\nError: " in found.output
        assert "Traceback" not in found.output

    def test_the_record_of_another_cluster_is_refused(self, kafka: MemorySite, tmp_path: Path):
        record = tmp_path / "undo.json"
        run("demote", 1, "--record", record, *BOOTSTRAP)
        kafka.cluster.cluster_id = "another-cluster"
        found = run("demote", 2, "--record", record, *BOOTSTRAP)
        assert found.exit_code == 1
        assert "another-cluster" in words(found)
        assert "choose another --record file" in words(found)

    def test_a_reorder_that_is_lost_is_finished_by_the_same_command(self, kafka: MemorySite, tmp_path: Path):
        record = tmp_path / "undo.json"
        kafka.cluster.shrink_isr(name("orders", 0), 2)
        kafka.cluster.shrink_isr(name("orders", 0), 3)
        assert run("demote", 1, "--record", record, *BOOTSTRAP).exit_code == 3
        kafka.cluster.catch_up(2)
        assert run("demote", 1, "--record", record, *BOOTSTRAP).exit_code == 0
        assert kafka.cluster.snapshot().leaders()[1] == 0

    def test_a_password_is_in_no_output(self, kafka: MemorySite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        sasl = ["--command-config", client_properties(tmp_path / "client.properties", "u", "s3cr3t-as-none")]
        seen = []
        monkeypatch.setattr(manual_demotion, "BrokerPool", lambda c, _limits: seen.append(c) or Route(kafka.cluster))
        good = run("demote", 1, "--record", tmp_path / "undo.json", *BOOTSTRAP, *sasl)
        bad = run("demote", 9, "--record", tmp_path / "undo.json", *BOOTSTRAP, *sasl)
        assert seen[0].security.password == "s3cr3t-as-none"
        record = (tmp_path / "undo.json").read_text()
        assert all("s3cr3t" not in text for text in (good.output, bad.output, record))
