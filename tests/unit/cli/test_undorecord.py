"""``bellwether undo-record``: look at an undo record, copy it, put a copy back."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.records import ConfigMapRecords
from bellwether.cli import undorecord as verb
from bellwether.cli.main import main
from bellwether.core.baselines import UndoRecord
from testkit.apistores import MemoryApi
from testkit.builders import CLUSTER_ID, demoted, entry, partition

OF_MAIN = ["--policy", "main"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["undo-record", *(str(a) for a in arguments)])


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> MemoryApi:
    made = MemoryApi()
    monkeypatch.setattr(verb, "connect", lambda: made)
    return made


def keep(api: MemoryApi, policy: str = "main", *, displaced: bool = True) -> None:
    records = ConfigMapRecords(api, "default", policy)
    taken = records.take_over(CLUSTER_ID)
    if displaced:
        records.save(UndoRecord(CLUSTER_ID, taken.epoch, {1: demoted(1)}, {partition().key: entry()}))


def test_show_says_who_is_demoted_and_what_is_displaced(api: MemoryApi):
    keep(api)
    found = run("show", *OF_MAIN)
    assert found.exit_code == 0
    assert f"Kafka cluster {CLUSTER_ID}, epoch 1" in found.output
    assert "broker 1 is demoted since 2026-01-01T00:00:00+00:00 (Signals)" in found.output
    assert "1 partitions Displaced" in found.output


def test_show_says_that_nothing_is_displaced(api: MemoryApi):
    keep(api, displaced=False)
    assert "nothing is displaced" in run("show", *OF_MAIN).output


@pytest.mark.parametrize("command", ["show", "export"])
def test_a_policy_without_a_record_is_named(api: MemoryApi, command: str):
    found = run(command, *OF_MAIN)
    assert found.exit_code == 1
    assert "default/main" in found.output or "main" in found.output


def test_what_is_exported_can_be_imported(api: MemoryApi, tmp_path: Path):
    keep(api)
    copy = tmp_path / "record.json"
    assert run("export", *OF_MAIN, "-o", copy).exit_code == 0
    keep(api, "other", displaced=False)
    found = run("import", "--policy", "other", copy)
    assert (found.exit_code, found.output) == (0, "imported: 1 partitions, demoted brokers [1]\n")
    record = ConfigMapRecords(api, "default", "other").read()
    assert record is not None
    assert dict(record.entries) == {partition().key: entry()}


def test_an_export_goes_to_standard_output_as_it_is(api: MemoryApi, tmp_path: Path):
    keep(api)
    copy = tmp_path / "record.json"
    run("export", *OF_MAIN, "-o", copy)
    assert run("export", *OF_MAIN).output == copy.read_text()


def test_a_record_that_holds_something_is_not_overwritten(api: MemoryApi, tmp_path: Path):
    keep(api)
    copy = tmp_path / "record.json"
    run("export", *OF_MAIN, "-o", copy)
    found = run("import", *OF_MAIN, copy)
    assert found.exit_code == 1
    assert "is not empty" in found.output


def test_a_document_that_is_none_is_refused(api: MemoryApi, tmp_path: Path):
    keep(api, displaced=False)
    copy = tmp_path / "record.json"
    copy.write_text("not a record")
    found = run("import", *OF_MAIN, copy)
    assert found.exit_code == 1
    assert "Traceback" not in found.output


def test_importing_needs_a_policy_that_has_reached_kafka(api: MemoryApi, tmp_path: Path):
    copy = tmp_path / "record.json"
    copy.write_text("{}")
    found = run("import", *OF_MAIN, copy)
    assert found.exit_code == 1
    assert "let the operator reach Kafka" in found.output
