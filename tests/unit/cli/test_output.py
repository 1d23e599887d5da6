"""``-o table``, ``json`` and ``yaml`` say the same."""

from __future__ import annotations

import json
from enum import StrEnum

import pytest
import yaml
from click.testing import CliRunner

from bellwether.cli.main import main
from bellwether.cli.output import document_text, print_lines, print_rows
from testkit.messages import assert_wording

HEAD = ("BROKER", "EXTERNAL ADDRESS", "AT-RISK")


class Colour(StrEnum):
    RED = "Red"


def test_a_document_is_the_same_in_both_formats() -> None:
    document = {"at": (1, 2), "colour": Colour.RED, "name": "größer", "none": None}
    plain = {"at": [1, 2], "colour": "Red", "name": "größer", "none": None}
    assert json.loads(document_text(document, "json")) == plain
    assert yaml.safe_load(document_text(document, "yaml")) == plain


def test_rows_are_a_table_or_documents_with_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(HEAD, [("1", "kafka:9092", "0")], "table")
    assert_wording(capsys.readouterr().out)
    print_rows(HEAD, [("1", "kafka:9092", "0")], "json")
    assert json.loads(capsys.readouterr().out) == [{"broker": "1", "externalAddress": "kafka:9092", "atRisk": "0"}]


def test_one_measurement_is_a_document_when_asked(tmp_path: object) -> None:
    found = CliRunner().invoke(main, ["probe", "storage", "--once", "--directory", str(tmp_path), "-o", "yaml"])
    row = yaml.safe_load(found.stdout)[0]
    assert (row["directory"], row["operation"]) == (str(tmp_path), "write")


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_control_characters_of_others_reach_no_terminal(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = "a\x1b]0;owned\x07\x9b31m\u202eb"
    print_rows(("BROKER",), [(said,)], output)
    print_lines([said], lambda: {"message": said}, output)
    shown = capsys.readouterr().out
    assert all(line.isprintable() for line in shown.split("\n"))
    assert output == "table" or yaml.safe_load(document_text([said], output)) == [said]
