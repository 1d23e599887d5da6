"""``bellwether undo-record``: look at an undo record, copy it, put a copy back."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters import undo_record_codec
from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS
from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.cli.main import main
from bellwether.core.model.undo_record import ApplicationEnd, Sender, UndoRecord
from bellwether.ports.errors import Fenced
from bellwether.simulation.memory_world import START, ManualClock
from testkit.kubernetes.memory_api import MemoryApi
from testkit.loads.approved_plans import application
from testkit.messages import assert_wording
from testkit.values.builders import CLUSTER_ID, demoted, entry, partition, returning

OF_MAIN = ["--policy", "main"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["undo-record", *(str(a) for a in arguments)])


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> MemoryApi:
    made = MemoryApi()
    made.serve_commands(monkeypatch)
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
    assert_wording(found.output)
    assert "1 partition is displaced" in found.output
    document = json.loads(run("show", *OF_MAIN, "-o", "json").stdout)
    assert (document["demoted"][0]["broker"], document["partitions"], "topics" in document) == (
        1,
        {"Displaced": 1},
        False,
    )


def test_show_says_that_nothing_is_displaced(api: MemoryApi):
    keep(api, displaced=False)
    assert "no partition is displaced" in run("show", *OF_MAIN).output


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        (None, "load plan 0123456789abcdef: being applied: 3 of 9 partitions applied"),
        (ApplicationEnd.DONE, "load plan 0123456789abcdef: Done: 9 of 9 partitions have the plan's order"),
    ],
)
def test_show_says_how_far_a_load_plan_has_come(api: MemoryApi, ended: ApplicationEnd | None, text: str):
    records = ConfigMapRecords(api, "default", "main")
    said = "" if ended is None else "9 of 9 partitions have the plan's order"
    plan = application(9, taken_up=3, ended=ended, message=said)
    records.save(replace(records.take_over(CLUSTER_ID), application=plan))
    assert text in run("show", *OF_MAIN).output


def test_show_says_who_is_on_the_way_back(api: MemoryApi):
    records = ConfigMapRecords(api, "default", "main")
    records.save(replace(records.take_over(CLUSTER_ID), returning={1: returning(1, 10)}))
    said = run("show", *OF_MAIN).output
    assert_wording(said)
    assert "no partition is displaced" not in said


def test_restorations_are_in_the_header_only_while_they_last(api: MemoryApi):
    records = ConfigMapRecords(api, "default", "main")
    taken = records.take_over(CLUSTER_ID)
    coming = replace(taken, returning={1: returning(1, 10)})
    records.save(coming)
    header = _header(api)
    assert "returning" in header["data"]
    written = header["metadata"]["resourceVersion"]
    records.save(coming)
    assert _header(api)["metadata"]["resourceVersion"] == written, "the same is not written again (invariant 8)"
    assert ConfigMapRecords(api, "default", "main").take_over(CLUSTER_ID).returning == coming.returning
    last = ConfigMapRecords(api, "default", "main")
    last.save(replace(last.take_over(CLUSTER_ID), returning={}))
    assert "returning" not in _header(api)["data"]


def _header(api: MemoryApi) -> dict:
    """The record's own object, without its shards."""
    (found,) = [o for o in api.list(CONFIG_MAPS, "default", {}) if "demoted" in (o.get("data") or {})]
    return dict(found)


@pytest.mark.parametrize("command", ["show", "export"])
def test_a_policy_without_a_record_is_named(api: MemoryApi, command: str):
    found = run(command, *OF_MAIN)
    assert found.exit_code == 1
    assert "default/main" in found.output or "main" in found.output


def test_what_is_exported_can_be_imported(api: MemoryApi, tmp_path: Path):
    keep(api)
    document = tmp_path / "record.json"
    assert run("export", *OF_MAIN, "--output-file", document).exit_code == 0
    keep(api, "other", displaced=False)
    found = run("import", "--policy", "other", document)
    assert found.exit_code == 0
    assert_wording(found.output)
    record = ConfigMapRecords(api, "default", "other").read()
    assert record is not None
    assert dict(record.entries) == {partition().key: entry()}


def test_an_export_goes_to_standard_output_as_it_is(api: MemoryApi, tmp_path: Path):
    keep(api)
    document = tmp_path / "record.json"
    run("export", *OF_MAIN, "--output-file", document)
    assert run("export", *OF_MAIN).output == document.read_text()


def epoch(api: MemoryApi) -> int:
    record = ConfigMapRecords(api, "default", "main").read()
    assert record is not None
    return record.epoch


def exported(record: UndoRecord) -> bytes:
    return undo_record_codec.export_record(record)


HELD = UndoRecord(CLUSTER_ID, 1, {1: demoted(1)}, {partition().key: entry()})


def test_a_record_that_holds_something_is_not_overwritten(api: MemoryApi, tmp_path: Path):
    keep(api)
    document = tmp_path / "record.json"
    run("export", *OF_MAIN, "--output-file", document)
    found = run("import", *OF_MAIN, document)
    assert found.exit_code == 1
    assert "is not empty" in found.output
    assert epoch(api) == 1


@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param(b"not a record", "damaged", id="no JSON"),
        pytest.param(exported(HELD).replace(b"[1,2,3]", b"[1,2,3.5]"), "is 3.5: expected", id="half a broker"),
        pytest.param(exported(replace(HELD, cluster_id="another")), "of Kafka cluster another", id="another cluster"),
        pytest.param(exported(UndoRecord(CLUSTER_ID, 1)), "there is nothing to import", id="nothing in it"),
    ],
)
def test_a_refused_document_leaves_the_running_operator_alone(
    api: MemoryApi, tmp_path: Path, document: bytes, said: str
):
    running = ConfigMapRecords(api, "default", "main")
    held = running.take_over(CLUSTER_ID)
    before = copy.deepcopy(api.all(CONFIG_MAPS))
    file = tmp_path / "record.json"
    file.write_bytes(document)
    found = run("import", *OF_MAIN, file)
    assert (found.exit_code, type(found.exception)) == (1, SystemExit)
    assert said in found.output
    assert api.all(CONFIG_MAPS) == before
    running.check()
    running.save(replace(held, demoted={1: demoted(1)}))


def test_importing_needs_a_policy_that_has_reached_kafka(api: MemoryApi, tmp_path: Path):
    document = tmp_path / "record.json"
    document.write_bytes(exported(HELD))
    found = run("import", *OF_MAIN, document)
    assert found.exit_code == 1
    assert_wording(" ".join(found.output.split()))
    assert api.all(CONFIG_MAPS) == []


def test_former_operator_is_ended_by_a_persons_word(api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("bellwether.cli.installation.undo_record.whoami", lambda: "ann")
    operators = [Sender(f"ops/{name}", name, "operator", "a", "first", START) for name in ("old", "new")]
    for one in operators:
        records = ConfigMapRecords(api, "default", "main", one)
        taken = records.take_over(CLUSTER_ID)
    records.save(replace(taken, demoted={1: demoted(1)}))
    for name in ("ops/new", "ops/other"):
        refused = run("sender-ended", *OF_MAIN, name)
        assert refused.exit_code == 1
        assert_wording(" ".join(refused.output.split()))
    assert (epoch(api), run("sender-ended", *OF_MAIN, "ops/old").exit_code) == (2, 0)
    with pytest.raises(Fenced):
        records.check()
    left = ConfigMapRecords(api, "default", "main").read()
    assert left is not None
    assert (left.senders, list(left.demoted)) == ((operators[1],), [1])
    (entry,) = ConfigMapAuditLog(api, "default", "main", ManualClock()).read()
    assert entry.occasion == "ann recorded that the former operator ops/old has ended"
