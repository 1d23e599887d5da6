from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether import __version__
from bellwether.cli.lazy_group import HINT
from bellwether.cli.main import main


def test_the_version_is_the_packages() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"bellwether {__version__}\n"


@pytest.mark.parametrize("verb", main.verbs)
def test_every_verb_that_is_listed_can_be_asked_for_help(verb: str) -> None:
    found = CliRunner().invoke(main, [verb, "--help"])
    assert (found.exit_code, found.output.splitlines()[0].startswith("Usage: ")) == (0, True)
    assert [line for line in found.output.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    "words", ["demote x", "promote 1 2.5", "promote -- -1", "release x", "drain x", "explain x", "history --broker x"]
)
def test_a_broker_that_is_no_number_is_refused_with_where_to_look(words: str) -> None:
    found = CliRunner().invoke(main, words.split())
    assert found.exit_code == 2
    assert "is not a broker id: use a number" in " ".join(found.output.split())


def test_help_lists_every_command_in_its_group() -> None:
    listed = CliRunner().invoke(main, ["--help"]).output.partition("Show this message and exit.")[2]
    groups = [re.findall(r"^  ([a-z-]+)  ", part, re.MULTILINE) for part in listed.strip().split("\n\n")]
    assert groups == [list(verbs) for verbs in main.groups.values()]


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("elect-everyone", "No such command 'elect-everyone'. See bellwether --help."),
        ("demot", "No such command 'demot'. Did you mean demote?"),
        ("probe canry", "No such command 'canry'. Did you mean canary?"),
        ("rebalance shwo", "No such command 'shwo'. Did you mean show?"),
    ],
)
def test_an_unknown_command_is_answered_with_those_that_it_resembles(typed: str, answer: str) -> None:
    found = CliRunner().invoke(main, typed.split(), prog_name="bellwether")
    assert (found.exit_code, answer in found.output) == (2, True)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("status orders", f"argument (orders). {HINT}"),
        ("probe storage orders", f"argument (orders). {HINT}"),
        ("explain 3 kafka orders", f"arguments (kafka orders). {HINT}"),
        ("explain --policy main 3 4", "argument (4)"),
    ],
)
def test_a_policy_that_is_given_as_an_argument_is_refused_with_its_option(command: str, error: str) -> None:
    found = CliRunner().invoke(main, command.split(), prog_name="bellwether")
    assert found.exit_code == 2
    last = " ".join(found.output.split()).partition("Error: ")[2]
    assert last == f"Got unexpected extra {error}"


def test_one_storage_measurement_needs_no_cluster_and_leaves_nothing(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["probe", "storage", "--once", "--directory", str(tmp_path)])
    assert "OBJECTIVE" in found.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reachability", "--once"], "--policy"),
        (["reachability", "--policy", "p", "--bootstrap", "h:1"], "require --once"),
        (["reachability", "--once", "--bootstrap", "nonsense"], "not host:port"),
        (["storage", "--policy", "p"], "--directory"),
        (["storage", "--directory", "/tmp"], "--policy"),
    ],
)
def test_what_is_missing_or_wrong_is_named(arguments: list[str], said: str) -> None:
    found = CliRunner().invoke(main, ["probe", *arguments])
    assert found.exit_code != 0
    assert said in found.output
