"""The commands that the doctor prints: the command line accepts each of ours as it is printed."""

from __future__ import annotations

import json
import shlex

import click
import pytest

from bellwether.cli.main import main
from bellwether.core.doctor.remediation import CommandOptions
from testkit.values.doctor_commands import commands

TOOLS = {
    "open": CommandOptions("[fd00::1]:9092", store=" --store '/var/my samples'"),
    "secured": CommandOptions("b:1", "client.properties", " --command-config pyproject.toml"),
    "policy": CommandOptions("b:1", "client.properties", policy=" --policy kafka --namespace streaming"),
    "policy by other addresses": CommandOptions(
        "b:1", options=" --bootstrap b:1", policy=" --policy kafka -n streaming"
    ),
}
KAFKA = {"kafka-topics.sh", "kafka-configs.sh", "kafka-reassign-partitions.sh", "kafka-metadata-quorum.sh"}


def parsed(line: str) -> click.Context:
    """Context of one of our commands. Raises UsageError if the command line does not accept it."""
    program, *words = shlex.split(line)
    assert program == "bellwether"
    root = main.make_context("bellwether", list(words))
    name, command, rest = main.resolve_command(root, words)
    assert command is not None
    return command.make_context(name, rest, parent=root)


@pytest.mark.parametrize("tools", TOOLS.values(), ids=TOOLS)
def test_every_command_of_ours_is_one_that_the_command_line_accepts(tools: CommandOptions) -> None:
    ours = [line for line in commands(tools) if line.startswith("bellwether ")]
    assert len(ours) >= 3
    for line in ours:
        given = parsed(line).params
        assert given.get("bootstrap") in (None, tools.bootstrap), line
        assert given["policy"] == ("kafka" if tools.policy else None), line


def test_a_command_with_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(click.UsageError):
        parsed("bellwether doctor --no-such-option")


@pytest.mark.parametrize("tools", TOOLS.values(), ids=TOOLS)
def test_every_other_command_is_a_tool_of_kafka_or_writes_the_file_that_it_reads(tools: CommandOptions) -> None:
    written = set()
    for line in (line for line in commands(tools) if not line.startswith("bellwether ")):
        program, *words = shlex.split(line)
        if program == "echo":
            content, arrow, file = words
            assert arrow == ">"
            assert json.loads(content)["partitions"]
            written.add(file)
        else:
            assert program in KAFKA
            assert ("--command-config" in words) == bool(tools.config)
    assert written == {"orders-0.json"}


def test_a_policys_commands_name_the_policy_and_explain_its_brokers() -> None:
    assert "bellwether explain 2 --policy kafka --namespace streaming" in commands(TOOLS["policy"])
    assert "bellwether demote 3 --policy kafka --namespace streaming" in commands(TOOLS["policy"])
    assert not [line for line in commands(TOOLS["open"]) if "explain" in line or "demote" in line]
