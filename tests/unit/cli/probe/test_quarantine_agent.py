"""``bellwether quarantine-agent``: what it asks for, and what it says of the process next to it without touching it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main
from bellwether.quarantine import hold_watchdog
from waiting import until

COMPLETE = ["--policy", "main", "--lease-namespace", "ops"]


@pytest.fixture
def sleeper() -> Iterator[int]:
    made = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield made.pid
    made.kill()
    made.wait()


def test_it_tells_how_the_process_is(sleeper: int) -> None:
    found = CliRunner().invoke(main, ["quarantine-agent", "--once", "--pid", str(sleeper)])
    assert found.exit_code == 0, found.output
    assert "Running" in found.output


def test_a_process_that_is_not_there_cannot_be_held() -> None:
    found = CliRunner().invoke(main, ["quarantine-agent", "--once", "--process", rf"no-such-{os.getpid()}\0"])
    assert found.exit_code == 4
    assert "Absent" in found.output
    assert "0 processes match" in found.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param([], "Missing option '--policy'", id="no policy"),
        pytest.param(["--policy", "main"], "Missing option '--lease-namespace'", id="no namespace"),
        pytest.param(["--max-hold-seconds", "0"], "--max-hold-seconds", id="no time at all"),
        pytest.param(["--once", "--process", "("], "no regular expression", id="a pattern that is none"),
    ],
)
def test_what_is_missing_or_wrong_is_named(arguments: list[str], said: str) -> None:
    found = CliRunner().invoke(main, ["quarantine-agent", *arguments])
    assert found.exit_code != 0
    assert said in found.output


def stopped(pid: int, *, becomes: bool) -> bool:
    """Whether a process is stopped, once it is as it should become."""
    until(lambda: (hold_watchdog.state_of(Path("/proc"), pid) == hold_watchdog.STOPPED) is becomes)
    return becomes


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param(COMPLETE, "no Kubernetes API is configured", id="no API"),
        pytest.param([], "Missing option '--policy'", id="no policy"),
        pytest.param([*COMPLETE, "--metrics-port", "TAKEN"], "choose a free port", id="port"),
    ],
)
def test_a_agent_that_cannot_even_start_releases_whom_its_forerunner_held(
    sleeper: int, fault: list[str], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    os.kill(sleeper, signal.SIGSTOP)
    assert stopped(sleeper, becomes=True)
    kubeconfig = tmp_path / "config"
    if "TAKEN" in fault:
        kubeconfig.write_text(
            "current-context: c\nusers: []\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
            "contexts: [{name: c, context: {cluster: c}}]\n"
        )
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    with socket.create_server(("", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [port if word == "TAKEN" else word for word in fault]
        found = CliRunner().invoke(main, ["quarantine-agent", "--pid", str(sleeper), *words])
    assert found.exit_code != 0
    assert said in found.output
    assert not stopped(sleeper, becomes=False)


def test_asking_how_a_held_process_is_leaves_it_held(sleeper: int) -> None:
    os.kill(sleeper, signal.SIGSTOP)
    assert stopped(sleeper, becomes=True)
    found = CliRunner().invoke(main, ["quarantine-agent", "--once", "--pid", str(sleeper)])
    assert "Stopped" in found.output
    assert stopped(sleeper, becomes=True)
