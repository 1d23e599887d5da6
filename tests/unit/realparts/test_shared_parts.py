"""A real part that dies fails the tests that need it, at once and by name, and no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUITE = """
import os, signal, sys
import pytest
from realparts.processes import ManagedProcess
from waiting import until

def part(name, folder):
    made = ManagedProcess(name, [sys.executable, "-c", "print('ready', flush=True); import time; time.sleep(600)"],
                          log=folder / name)
    made.start()
    made.wait_ready(lambda: "ready" in made.tail(), 30)
    return made

@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    yield (made := part("broker-2", tmp_path_factory.mktemp("a")))
    made.stop()

@pytest.fixture(scope="session")
def apiserver(tmp_path_factory):
    yield (made := part("apiserver", tmp_path_factory.mktemp("b")))
    made.stop()

@pytest.fixture
def topic(broker):
    return "orders"

def test_that_ends_it_on_purpose(broker):
    broker.kill()

def test_that_starts_it_again(broker):
    broker.start()

def test_during_which_it_dies(broker, apiserver):
    os.killpg(broker.pid, signal.SIGKILL)
    until(lambda: not broker.alive)

def test_that_needs_it(topic):
    pass

def test_of_another_part(apiserver):
    assert apiserver.alive

def test_of_no_part():
    pass
"""


def test_a_part_that_dies_fails_only_the_tests_that_need_it_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text(
        "from testkit.processes.shared_parts import SharedParts\n"
        "def pytest_configure(config):\n    config.pluginmanager.register(SharedParts())\n"
    )
    support = Path(__file__).parents[2] / "support"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--rootdir=.", "."],
        cwd=tmp_path,
        env={"PYTHONPATH": str(support), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line.partition(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))] == [
        "FAILED test_suite.py::test_that_needs_it"
    ]
    assert "broker-2 has died (status -9) before this test, which needs it; its log is " in done.stdout
    assert "5 passed" in done.stdout
