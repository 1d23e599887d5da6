"""``bellwether warden``: what it asks for, and what it says of the process beside it without touching it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main


@pytest.fixture
def sleeper() -> Iterator[int]:
    made = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield made.pid
    made.kill()
    made.wait()


def test_it_tells_how_the_process_is(sleeper: int) -> None:
    found = CliRunner().invoke(main, ["warden", "--once", "--pid", str(sleeper)])
    assert found.exit_code == 0, found.output
    assert "Running" in found.output


def test_a_process_that_is_not_there_cannot_be_paused() -> None:
    found = CliRunner().invoke(main, ["warden", "--once", "--process", rf"no-such-{os.getpid()}\0"])
    assert found.exit_code == 1
    assert "Absent" in found.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param([], "Missing option '--policy'", id="no policy"),
        pytest.param(["--policy", "main"], "Missing option '--broker'", id="no broker"),
        pytest.param(["--once", "--process", "("], "no regular expression", id="a pattern that is none"),
        pytest.param(["--broker", "kafka"], "--broker", id="a name without a number"),
    ],
)
def test_what_is_missing_or_wrong_is_named(arguments: list[str], said: str) -> None:
    found = CliRunner().invoke(main, ["warden", *arguments])
    assert found.exit_code != 0
    assert said in found.output
