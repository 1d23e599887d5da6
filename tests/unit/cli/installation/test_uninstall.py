"""``bellwether uninstall``: with an operator that does the work, with none, and twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, POLICIES, NamespaceEnding
from bellwether.cli.installation import uninstall as verb
from bellwether.cli.main import main
from bellwether.controllers.deletion.finalizer import FINALIZER
from bellwether.controllers.policy_controller import PolicyController
from bellwether.core.signals import Reading
from bellwether.ports.errors import Terminal
from testkit.offices import Office


@pytest.fixture
def office() -> Iterator[Office]:
    made = Office.well()
    yield made
    made.close()


class Clock:
    """The office's clock, whose seconds are the operator's steps; without a loop nobody works while one sleeps."""

    def __init__(self, office: Office, loop: PolicyController | None) -> None:
        self._office, self._loop = office, loop

    def now(self) -> Any:
        return self._office.site.clock.now()

    def monotonic(self) -> float:
        return float(self._office.site.clock.monotonic())

    def sleep(self, seconds: float) -> None:
        if self._loop is not None:
            self._office.step(self._loop, seconds=seconds)
        else:
            self._office.site.clock.advance(seconds)


def run(monkeypatch: pytest.MonkeyPatch, office: Office, loop: PolicyController | None, *arguments: object) -> Result:
    monkeypatch.setattr(verb, "connect", lambda: office.api)
    monkeypatch.setattr(verb, "SystemClock", lambda: Clock(office, loop))
    return CliRunner().invoke(main, ["uninstall", *(str(a) for a in arguments)])


def demoting(office: Office) -> PolicyController:
    loop = office.make()
    office.step(loop)
    office.site.signals.say(1, Reading.FAILING)
    office.step(loop, 2)
    return loop


def held(office: Office) -> list[str]:
    return [
        str(o["metadata"]["name"])
        for o in (*office.api.all(POLICIES), *office.api.all(CONFIG_MAPS))
        if o["metadata"].get("finalizers")
    ]


def exports(office: Office) -> list[str]:
    return [str(c["metadata"]["name"]) for c in office.api.all(CONFIG_MAPS) if "-export-" in c["metadata"]["name"]]


def test_the_operator_restores_and_the_command_says_so(monkeypatch: pytest.MonkeyPatch, office: Office):
    loop = demoting(office)
    office.site.signals.say(1, Reading.PASSING)
    found = run(monkeypatch, office, loop)
    assert (found.exit_code, found.output) == (0, "default/main: every order is as it was before Bellwether moved it\n")
    assert office.site.cluster.partitions()[0].replicas == (1, 2, 3)
    assert (held(office), exports(office)) == ([], [])


def test_what_stays_displaced_is_said_to_be_exported(monkeypatch: pytest.MonkeyPatch, office: Office):
    loop = demoting(office)
    found = run(monkeypatch, office, loop)
    assert found.exit_code == 0
    assert f"default/main: what could not be put back is in ConfigMap {exports(office)[0]}" in found.output
    assert held(office) == []


def test_a_second_time_it_finds_nothing_to_do(monkeypatch: pytest.MonkeyPatch, office: Office):
    loop = demoting(office)
    first = run(monkeypatch, office, loop)
    second = run(monkeypatch, office, loop)
    assert (second.exit_code, second.stdout) == (0, first.stdout)
    assert len(exports(office)) == 1


def test_without_an_operator_the_record_is_exported_when_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, office: Office
):
    demoting(office)
    began = office.site.clock.monotonic()
    found = run(monkeypatch, office, None, "--timeout", 30)
    assert found.exit_code == 0
    assert 30 <= office.site.clock.monotonic() - began <= 50
    assert "default/main: no operator finished it in time; left as it is, default/bellwether-undo-main" in found.output
    assert (held(office), len(exports(office))) == ([], 1)


def test_by_hand_nobody_is_waited_for(monkeypatch: pytest.MonkeyPatch, office: Office):
    demoting(office)
    began = office.site.clock.monotonic()
    assert run(monkeypatch, office, None, "--by-hand").exit_code == 0
    assert office.site.clock.monotonic() == began
    assert (held(office), len(exports(office))) == ([], 1)


def test_a_namespace_that_hangs_is_freed_and_its_record_printed(monkeypatch: pytest.MonkeyPatch, office: Office):
    demoting(office)
    office.api.refuse("create", CONFIG_MAPS, NamespaceEnding("its namespace is being deleted"))
    office.api.delete(POLICIES, "default", "main")
    for one in office.api.list(CONFIG_MAPS, "default"):
        office.api.delete(CONFIG_MAPS, "default", one["metadata"]["name"])
    found = run(monkeypatch, office, None, "--by-hand", "-n", "default")
    assert found.exit_code == 0
    document = json.loads(found.stdout.splitlines()[0])
    assert [one["broker"] for one in document["demoted"]] == [1]
    assert office.api.all(POLICIES) == []
    assert office.api.all(CONFIG_MAPS) == []


def test_a_record_goes_to_a_directory_and_over_no_other(
    monkeypatch: pytest.MonkeyPatch, office: Office, tmp_path: Path
):
    demoting(office)
    (tmp_path / "default-main-record.json").write_text("an older one")
    found = run(monkeypatch, office, None, "--by-hand", "--export-to", tmp_path)
    assert found.exit_code == 0
    assert (tmp_path / "default-main-record.json").read_text() == "an older one"
    assert json.loads((tmp_path / "default-main-record-2.json").read_text())["demoted"]
    assert exports(office) == []


def test_a_directory_that_cannot_be_written_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, office: Office, tmp_path: Path
):
    demoting(office)
    (tmp_path / "file").write_text("")
    before = held(office)
    office.api.refuse("create", CONFIG_MAPS, NamespaceEnding("its namespace is being deleted"))
    for one in office.api.list(CONFIG_MAPS, "default"):
        office.api.delete(CONFIG_MAPS, "default", one["metadata"]["name"])
    found = run(monkeypatch, office, None, "--by-hand", "--export-to", tmp_path / "file")
    assert found.exit_code == 1
    assert "--export-to" in found.output
    assert "name a directory that can be written" in found.output
    assert held(office) == before


def test_a_record_whose_policy_is_gone_is_exported_and_freed(monkeypatch: pytest.MonkeyPatch, office: Office):
    demoting(office)
    office.api.merge(POLICIES, "default", "main", {"metadata": {"finalizers": []}})
    office.api.delete(POLICIES, "default", "main")
    found = run(monkeypatch, office, None, "--by-hand")
    assert found.exit_code == 0
    assert (held(office), exports(office)) == ([], ["bellwether-undo-main-export-gone"])


def test_what_is_refused_is_named_and_tried_again_the_next_time(monkeypatch: pytest.MonkeyPatch, office: Office):
    demoting(office)
    office.api.refuse("merge", CONFIG_MAPS, Terminal("not allowed to patch configmaps"))
    found = run(monkeypatch, office, None, "--by-hand")
    assert found.exit_code == 1
    assert "default/main: not allowed to patch configmaps" in found.output
    assert FINALIZER in office.body()["metadata"]["finalizers"]
    office.api.refuse("merge", CONFIG_MAPS, None)
    assert run(monkeypatch, office, None, "--by-hand").exit_code == 0
    assert held(office) == []


def test_export_asks_for_no_restoring(monkeypatch: pytest.MonkeyPatch, office: Office):
    loop = demoting(office)
    office.site.signals.say(1, Reading.PASSING)
    before = office.site.cluster.mutations
    assert run(monkeypatch, office, loop, "--mode", "export").exit_code == 0
    assert office.site.cluster.mutations == before
    assert (held(office), len(exports(office))) == ([], 1)


def test_with_nothing_installed_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch, office: Office):
    found = run(monkeypatch, office, None)
    assert (found.exit_code, found.output) == (0, "")
