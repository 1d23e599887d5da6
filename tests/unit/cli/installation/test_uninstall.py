"""``bellwether uninstall``: with an operator that does the work, with none, and twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, POLICIES
from bellwether.adapters.kubernetes.api_errors import NamespaceEnding
from bellwether.cli.installation import uninstall as verb
from bellwether.cli.main import main
from bellwether.controllers.policy_controller import PolicyController
from bellwether.controllers.policy_finalizer import FINALIZER
from bellwether.core.signals import Reading
from bellwether.ports.errors import Terminal
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import MemoryOperator


@pytest.fixture
def operator() -> Iterator[MemoryOperator]:
    made = MemoryOperator.well()
    yield made
    made.close()


class Clock:
    """The operator's clock, whose seconds are the operator's steps; without a loop nothing works while one sleeps."""

    def __init__(self, operator: MemoryOperator, loop: PolicyController | None) -> None:
        self._office, self._loop = operator, loop

    def now(self) -> Any:
        return self._office.site.clock.now()

    def monotonic(self) -> float:
        return float(self._office.site.clock.monotonic())

    def sleep(self, seconds: float) -> None:
        if self._loop is not None:
            self._office.step(self._loop, seconds=seconds)
        else:
            self._office.site.clock.advance(seconds)


def run(
    monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator, loop: PolicyController | None, *arguments: object
) -> Result:
    operator.api.serve_commands(monkeypatch)
    monkeypatch.setattr(verb, "SystemClock", lambda: Clock(operator, loop))
    return CliRunner().invoke(main, ["uninstall", *(str(a) for a in arguments)])


def demoting(operator: MemoryOperator) -> PolicyController:
    loop = operator.begin()
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 2)
    return loop


def held(operator: MemoryOperator) -> list[str]:
    return [
        str(o["metadata"]["name"])
        for o in (*operator.api.all(POLICIES), *operator.api.all(CONFIG_MAPS))
        if o["metadata"].get("finalizers")
    ]


def exports(operator: MemoryOperator) -> list[str]:
    return [str(c["metadata"]["name"]) for c in operator.api.all(CONFIG_MAPS) if "-export-" in c["metadata"]["name"]]


def test_the_operator_restores_and_the_command_says_so(monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator):
    loop = demoting(operator)
    operator.site.signals.say(1, Reading.PASSING)
    found = run(monkeypatch, operator, loop)
    assert found.exit_code == 0
    assert_wording(found.output)
    assert operator.site.cluster.partitions()[0].replicas == (1, 2, 3)
    assert (held(operator), exports(operator)) == ([], [])


def test_a_second_time_it_finds_nothing_to_do(monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator):
    loop = demoting(operator)
    first = run(monkeypatch, operator, loop)
    assert f"default/main: baselines that were not restored are in ConfigMap {exports(operator)[0]}" in first.output
    assert held(operator) == []
    second = run(monkeypatch, operator, loop)
    assert (second.exit_code, second.stdout) == (0, first.stdout)
    assert len(exports(operator)) == 1


def test_without_an_operator_the_record_is_exported_when_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator
):
    demoting(operator)
    began = operator.site.clock.monotonic()
    found = run(monkeypatch, operator, None, "--timeout", 30)
    assert found.exit_code == 0
    assert 30 <= operator.site.clock.monotonic() - began <= 50
    assert_wording(found.output)
    assert (held(operator), len(exports(operator))) == ([], 1)


def test_without_an_operator_it_does_not_wait(monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator):
    demoting(operator)
    began = operator.site.clock.monotonic()
    assert run(monkeypatch, operator, None, "--without-operator").exit_code == 0
    assert operator.site.clock.monotonic() == began
    assert (held(operator), len(exports(operator))) == ([], 1)


def test_a_namespace_that_hangs_is_freed_and_its_record_printed(
    monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator
):
    demoting(operator)
    operator.api.refuse("create", CONFIG_MAPS, NamespaceEnding("its namespace is being deleted"))
    operator.api.delete(POLICIES, "default", "main")
    for one in operator.api.list(CONFIG_MAPS, "default"):
        operator.api.delete(CONFIG_MAPS, "default", one["metadata"]["name"])
    found = run(monkeypatch, operator, None, "--without-operator", "-n", "default")
    assert found.exit_code == 0
    document = json.loads(found.stdout.splitlines()[0])
    assert [one["broker"] for one in document["demoted"]] == [1]
    assert operator.api.all(POLICIES) == []
    assert operator.api.all(CONFIG_MAPS) == []


def test_a_record_goes_to_a_directory_and_over_no_other(
    monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator, tmp_path: Path
):
    demoting(operator)
    (tmp_path / "default-main-record.json").write_text("an older one")
    found = run(monkeypatch, operator, None, "--without-operator", "--export-to", tmp_path)
    assert found.exit_code == 0
    assert (tmp_path / "default-main-record.json").read_text() == "an older one"
    assert json.loads((tmp_path / "default-main-record-2.json").read_text())["demoted"]
    assert exports(operator) == []


def test_a_directory_that_cannot_be_written_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator, tmp_path: Path
):
    demoting(operator)
    (tmp_path / "file").write_text("")
    before = held(operator)
    operator.api.refuse("create", CONFIG_MAPS, NamespaceEnding("its namespace is being deleted"))
    for one in operator.api.list(CONFIG_MAPS, "default"):
        operator.api.delete(CONFIG_MAPS, "default", one["metadata"]["name"])
    found = run(monkeypatch, operator, None, "--without-operator", "--export-to", tmp_path / "file")
    assert found.exit_code == 1
    assert "--export-to" in found.output
    assert "use a writable directory" in found.output
    assert held(operator) == before


def test_a_record_whose_policy_is_gone_is_exported_and_freed(monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator):
    demoting(operator)
    operator.api.merge(POLICIES, "default", "main", {"metadata": {"finalizers": []}})
    operator.api.delete(POLICIES, "default", "main")
    found = run(monkeypatch, operator, None, "--without-operator")
    assert found.exit_code == 0
    assert (held(operator), exports(operator)) == ([], ["bellwether-export-main.gone"])


def test_what_is_refused_is_named_and_tried_again_the_next_time(
    monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator
):
    demoting(operator)
    operator.api.refuse("merge", CONFIG_MAPS, Terminal("not allowed to patch configmaps"))
    found = run(monkeypatch, operator, None, "--without-operator")
    assert found.exit_code == 1
    assert "default/main: not allowed to patch configmaps" in found.output
    assert FINALIZER in operator.body()["metadata"]["finalizers"]
    operator.api.refuse("merge", CONFIG_MAPS, None)
    assert run(monkeypatch, operator, None, "--without-operator").exit_code == 0
    assert held(operator) == []


def test_export_asks_for_no_restoring(monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator):
    loop = demoting(operator)
    operator.site.signals.say(1, Reading.PASSING)
    before = operator.site.cluster.mutations
    assert run(monkeypatch, operator, loop, "--mode", "export").exit_code == 0
    assert operator.site.cluster.mutations == before
    assert (held(operator), len(exports(operator))) == ([], 1)


def test_with_nothing_installed_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch, operator: MemoryOperator):
    found = run(monkeypatch, operator, None)
    assert (found.exit_code, found.output) == (0, "")
