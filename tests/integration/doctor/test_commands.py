"""The commands of Kafka's tools that the doctor prints: each tool knows every option that is passed to it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bellwether.core.doctor.remediation import CommandOptions
from realparts import kafka_tools
from testkit.values.doctor_commands import commands
from waiting import ran

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

LINES = [line for line in commands(CommandOptions("b:1", "client.properties")) if line.startswith("kafka-")]
TOOLS = sorted({line.split()[0] for line in LINES})


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tools")
    kafka_tools.install(made)
    return made


@pytest.mark.parametrize("tool", TOOLS)
def test_the_tool_knows_every_option_that_is_passed_to_it(tool: str, scripts: Path) -> None:
    passed = {word for line in LINES if line.startswith(tool) for word in shlex.split(line) if word.startswith("--")}
    noted = ""
    for words in ([], ["describe"]) if tool == "kafka-metadata-quorum.sh" else ([],):
        done = ran([scripts / tool, *words, "--help"], 60)
        noted += done.stdout + done.stderr
    assert passed
    assert passed <= set(re.findall(r"--[a-z-]+", noted)), noted
