"""What the shell completes from the cluster, and that nothing is said when it cannot."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.shell_completion import ShellComplete

from bellwether.adapters.kubernetes import kubeconfig
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES
from bellwether.cli import completion, kubectl_plugin
from bellwether.cli.main import main
from bellwether.ports.errors import Transient
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording


def completed(*words: str) -> list[str]:
    """What is offered for the last word."""
    *before, incomplete = words
    return [one.value for one in ShellComplete(main, {}, "bellwether", "_X").get_completions(before, incomplete)]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> MemoryApi:
    """Policy ``orders`` with brokers 1, 2 and 10 in two racks, and ``payments`` with broker 7."""
    made = MemoryApi()
    made.serve_commands(monkeypatch)
    for name, brokers in (("orders", {1: "dc-1", 2: "dc-2", 10: "dc-1"}), ("payments", {7: "dc-3"})):
        made.put(POLICIES, api_objects.policy(name))
        for broker, rack in brokers.items():
            body = api_objects.health(broker, f"{name}-{broker}", policyRef={"name": name})
            made.put(BROKER_HEALTHS, {**body, "status": {"rack": rack}})
    return made


@pytest.mark.usefixtures("api")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("status", "--policy", ""), ["orders", "payments"]),
        (("status", "--policy", "pa"), ["payments"]),
        (("status", "-n", ""), ["default"]),
        (("demote", "--policy", "orders", ""), ["1", "2", "10"]),
        (("demote", "--policy", "orders", "1", ""), ["2", "10"]),
        (("demote", "--policy", "orders", "--rack", ""), ["dc-1", "dc-2"]),
        (("explain", ""), ["1", "2", "7", "10"]),
        (("drain", "--policy", "payments", ""), ["7"]),
        (("history", "--broker", "1"), ["1", "10"]),
    ],
)
def test_names_in_the_cluster_are_completed(words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(*words) == offered


def test_a_policy_of_another_namespace_is_not_offered(api: MemoryApi) -> None:
    assert completed("status", "-n", "kafka", "--policy", "") == []


def test_contexts_are_those_of_the_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump({"contexts": [{"name": "west"}, {"name": "east"}], "clusters": [], "users": []}))
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert completed("status", "--context", "") == ["east", "west"]
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nothing"))
    assert completed("status", "--context", "") == []


def test_an_error_completes_nothing_and_says_nothing(api: MemoryApi, capfd: pytest.CaptureFixture[str]) -> None:
    api.refuse("list", POLICIES, Transient("away"))
    assert completed("status", "--policy", "") == []
    assert capfd.readouterr() == ("", "")


def test_an_api_that_does_not_answer_is_not_waited_for(api: MemoryApi, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = threading.Event()

    def hanging(*_: Any) -> Any:
        answer.wait()
        raise Transient("late")

    monkeypatch.setattr(kubeconfig, "api_access", hanging)
    monkeypatch.setattr(completion, "SECONDS", 0.05)
    assert completed("status", "--policy", "") == []
    answer.set()


@pytest.mark.usefixtures("api")
def test_kubectl_is_given_words_and_a_directive(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-leaders", "demote", "--policy", "pay"])
    kubectl_plugin.complete()
    assert capsys.readouterr().out == "payments\n:4\n"
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-leaders", "demo"])
    kubectl_plugin.complete()
    assert_wording(capsys.readouterr().out)


def test_kubectl_leaders_is_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "argv", ["kubectl-leaders", "status", "--help"])
    with pytest.raises(SystemExit) as ended:
        kubectl_plugin.run()
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("Usage: kubectl leaders status [OPTIONS]\n")
