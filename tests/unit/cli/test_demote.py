"""``demote``, ``promote`` and ``release`` as a person meets them: help, mistakes, exit statuses, no secret."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.client import BROKER_HEALTHS, POLICIES
from bellwether.adapters.memory.views import MemoryMover, MemoryReader, MemoryRoute
from bellwether.adapters.memory.worlds import MemorySite
from bellwether.cli import byhand, demote, overrides
from bellwether.cli.main import main
from bellwether.ports import Terminal
from testkit import apiobjects
from testkit.apistores import MemoryApi
from testkit.builders import name, site

BOOTSTRAP = ["--bootstrap", "kafka.example:9092"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def words(found: Result) -> str:
    """The output on one line, as the terminal's width breaks it anywhere."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", found.output).split())


class Route(MemoryRoute):
    """A route that can be told whom to avoid before there is a reader, as the command does."""

    def avoid(self, brokers: Iterable[int]) -> None:
        self.avoided = frozenset(brokers)


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> MemorySite:
    """Every bootstrap leads to one simulated cluster, and nobody waits."""
    made = site()

    monkeypatch.setattr(byhand, "Nodes", lambda _: Route(made.cluster))
    monkeypatch.setattr(byhand, "KafkaReader", lambda route: MemoryReader(made.cluster, route))
    monkeypatch.setattr(byhand, "KafkaMover", lambda route: MemoryMover(made.cluster, 2.0, route=route))
    monkeypatch.setattr(byhand, "SystemClock", lambda: made.clock)
    return made


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> MemoryApi:
    """A policy of brokers 1 to 3, of which nobody is judged yet."""
    made = MemoryApi()
    made.put(POLICIES, apiobjects.policy())
    for broker in (1, 2, 3):
        health = apiobjects.health(broker)
        health["metadata"]["labels"] = {"bellwether.dev/policy": "main"}
        made.put(BROKER_HEALTHS, health)
    monkeypatch.setattr(demote, "connect", lambda: made)
    monkeypatch.setattr(overrides.time, "sleep", lambda _: None)
    return made


def says(api: MemoryApi, demoted: bool, leaders: int) -> None:
    """The operator reports."""
    condition = {"type": "Demoted", "status": str(demoted), "message": "so the operator says"}
    api.merge(BROKER_HEALTHS, "default", "main-1", {"status": {"conditions": [condition], "leaders": leaders}})


@pytest.mark.parametrize("verb", ["demote", "promote", "release"])
def test_help_names_every_option_with_its_meaning(verb: str):
    found = run(verb, "--help")
    assert found.exit_code == 0
    assert "--policy" in found.output
    assert "--namespace" in found.output
    if verb != "release":
        for option in ("--record", "--bootstrap", "--for", "--wait", "--dry-run", "--sasl-password-file"):
            assert option in found.output
        assert "--sasl-password " not in found.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param([], "Missing argument 'BROKER'", id="no broker"),
        pytest.param(["one"], "'one' is not a valid integer", id="a broker in words"),
        pytest.param(["--", "-1"], "-1 is not in the range", id="a negative broker"),
        pytest.param(["1"], "give either --policy NAME", id="neither policy nor record"),
        pytest.param(["1", "--policy", "p", "--record", "r"], "give either --policy NAME", id="both"),
        pytest.param(["1", "--record", "r"], "--record needs --bootstrap HOST:PORT", id="no bootstrap"),
        pytest.param(["1", "--policy", "p", *BOOTSTRAP], "a policy knows its own cluster", id="bootstrap and policy"),
        pytest.param(["1", "--policy", "p", "--dry-run"], "--dry-run and --bootstrap go with --record", id="dry run"),
        pytest.param(["1", "--policy", "p", "--for", "soon"], "--for 'soon': a number with s, m, h or d", id="soon"),
        pytest.param(["1", "--policy", "p", "--for", "9" * 20 + "d"], "longer than a calendar reaches", id="for ever"),
        pytest.param(
            ["1", "--record", "r", *BOOTSTRAP, "--for", "1h"], "--for goes with --policy", id="nobody would end it"
        ),
        pytest.param(["1", "--record", "r", "--bootstrap", "kafka"], "host:port", id="a bootstrap without a port"),
        pytest.param(
            ["1", "--record", "r", *BOOTSTRAP, "--sasl-mechanism", "MAGIC"], "'--sasl-mechanism'", id="no mechanism"
        ),
        pytest.param(
            ["1", "--record", "r", *BOOTSTRAP, "--tls-ca", "missing.pem"], "'missing.pem' does not exist", id="no file"
        ),
    ],
)
@pytest.mark.parametrize("verb", ["demote", "promote"])
def test_a_mistake_is_answered_with_the_option_and_the_remedy(verb: str, arguments: Sequence[str], said: str):
    found = run(verb, *arguments)
    assert found.exit_code == 2
    assert said in words(found)


def test_promoting_needs_the_record_that_demoting_wrote(kafka: MemorySite, tmp_path: Path):
    found = run("promote", 1, "--record", tmp_path / "none.json", *BOOTSTRAP)
    assert found.exit_code == 2
    assert "promoting needs the record that demoting wrote" in words(found)


class TestByHand:
    def test_demoting_and_promoting_are_each_others_inverse(self, kafka: MemorySite, tmp_path: Path):
        before = [p.replicas for p in kafka.cluster.partitions()]
        record = tmp_path / "undo.json"
        found = run("demote", 1, "--record", record, *BOOTSTRAP)
        assert (found.exit_code, found.exception) == (0, None)
        assert "4 partitions reordered, 2 leaders elected" in found.output
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
        assert "would reorder 4 partitions and move 2 leaders" in found.output
        assert "orders-0: [1, 2, 3] -> [2, 3, 1], leader 1 -> 2" in found.output
        assert kafka.cluster.mutations == before
        assert list(tmp_path.iterdir()) == []

    def test_what_is_held_back_is_named_and_is_exit_status_3(self, kafka: MemorySite, tmp_path: Path):
        kafka.cluster.create_topic("alone", assignment=[(1,)])
        found = run("demote", 1, "--record", tmp_path / "undo.json", *BOOTSTRAP)
        assert found.exit_code == 3
        assert "1 held back, OnlyReplica" in found.output
        assert "alone-0" in found.output
        assert kafka.cluster.snapshot().leaders()[1] == 1

    def test_a_broker_that_nobody_knows_is_refused_with_those_that_are(self, kafka: MemorySite, tmp_path: Path):
        before = kafka.cluster.mutations
        found = run("demote", 9, "--record", tmp_path / "undo.json", *BOOTSTRAP)
        assert found.exit_code == 1
        assert "no broker 9 in this cluster; it has 1, 2, 3" in found.output
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
        password = tmp_path / "password"
        password.write_text("s3cr3t-as-none\n")
        sasl = ["--tls", "--sasl-mechanism", "PLAIN", "--sasl-username", "u", "--sasl-password-file", password]
        seen = []
        monkeypatch.setattr(byhand, "Nodes", lambda c: seen.append(c) or Route(kafka.cluster))
        good = run("demote", 1, "--record", tmp_path / "undo.json", *BOOTSTRAP, *sasl)
        bad = run("demote", 9, "--record", tmp_path / "undo.json", *BOOTSTRAP, *sasl)
        assert seen[0].security.password == "s3cr3t-as-none"
        record = (tmp_path / "undo.json").read_text()
        assert all("s3cr3t" not in text for text in (good.output, bad.output, record))


@pytest.mark.usefixtures("api")
class TestThroughTheOperator:
    def override(self, api: MemoryApi, broker: int = 1) -> dict | None:
        return api.get(BROKER_HEALTHS, "default", f"main-{broker}")["spec"].get("override")

    def test_an_override_is_set_and_its_effect_awaited(self, api: MemoryApi):
        says(api, demoted=True, leaders=0)
        found = run("demote", 1, "--policy", "main", "--reason", "disk swap")
        assert found.exit_code == 0
        override = self.override(api)
        assert override is not None
        assert (override["state"], override["reason"], "until" in override) == ("Demoted", "disk swap", False)
        assert override["by"]
        assert "broker 1 leads 0 partitions (so the operator says)" in found.output

    def test_leaders_that_are_left_behind_are_exit_status_3(self, api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
        says(api, demoted=True, leaders=2)
        ticks = iter(range(10_000))
        monkeypatch.setattr(overrides.time, "monotonic", lambda: float(next(ticks)))
        found = run("demote", 1, "--policy", "main", "--wait", 5)
        assert found.exit_code == 3
        assert "not done within 5 s: see `kubectl describe lp main -n default`" in words(found)

    def test_not_waiting_is_success_at_once(self):
        assert run("demote", 1, "--policy", "main", "--wait", 0).exit_code == 0

    @pytest.mark.parametrize(("given", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d", 86400)])
    def test_an_override_ends_at_its_time(self, api: MemoryApi, given: str, seconds: int):
        began = datetime.now(UTC)  # noqa: TID251 - the command reads the real clock
        assert run("demote", 1, "--policy", "main", "--for", given, "--wait", 0).exit_code == 0
        override = self.override(api)
        assert override is not None
        until = datetime.fromisoformat(override["until"])
        assert abs((until - began).total_seconds() - seconds) < 30

    def test_promoting_is_an_override_to_lead(self, api: MemoryApi):
        says(api, demoted=False, leaders=3)
        assert run("promote", 1, "--policy", "main").exit_code == 0
        override = self.override(api)
        assert override is not None
        assert (override["state"], override["reason"]) == ("Promoted", "bellwether promote")

    def test_releasing_takes_the_override_away(self, api: MemoryApi):
        run("demote", 1, "--policy", "main", "--wait", 0)
        found = run("release", 1, "--policy", "main")
        assert (found.exit_code, found.output) == (0, "broker 1: the override is gone\n")
        assert self.override(api) is None

    @pytest.mark.parametrize("verb", ["demote", "promote", "release"])
    @pytest.mark.parametrize(
        ("broker", "policy", "said"),
        [
            pytest.param(1, "none", "there is no LeadershipPolicy none in namespace default", id="no policy"),
            pytest.param(9, "main", "policy main knows no broker 9; it knows: 1, 2, 3", id="no broker"),
        ],
    )
    def test_what_is_not_there_is_named(self, verb: str, broker: int, policy: str, said: str):
        found = run(verb, broker, "--policy", policy)
        assert found.exit_code == 1
        assert said in words(found)

    @pytest.mark.parametrize("verb", ["demote", "release"])
    def test_without_a_kubernetes_api_the_remedy_is_named(self, verb: str, monkeypatch: pytest.MonkeyPatch):
        def nowhere() -> MemoryApi:
            raise Terminal("no Kubernetes API configured: run inside a cluster, or set KUBECONFIG")

        monkeypatch.setattr(demote, "connect", nowhere)
        found = run(verb, 1, "--policy", "main")
        assert found.exit_code == 1
        assert "set KUBECONFIG" in words(found)

    def test_a_person_without_a_name_is_told_by_their_number(self, api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
        def nameless() -> str:
            raise KeyError("no such user")

        monkeypatch.setattr(demote.getpass, "getuser", nameless)
        run("demote", 1, "--policy", "main", "--wait", 0)
        override = self.override(api)
        assert override is not None
        assert override["by"].startswith("uid ")
