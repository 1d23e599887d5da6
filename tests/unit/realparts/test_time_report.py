"""The report of times names programs, and counts what the processes below a worker use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from testkit.processes.time_report import ProcessTree, program_name
from waiting import until


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/bin/java -Xmx1g -cp a.jar kafka.Kafka server.properties", "kafka.Kafka"),
        ("/v/bin/python -m bellwether operator -n x", "bellwether operator"),
        ("/cache/etcd --data-dir=x", "etcd"),
        ("", ""),
    ],
)
def test_a_program_is_named_in_a_word_or_two(command: str, name: str) -> None:
    assert program_name(command.split()) == name


def test_the_cpu_of_a_child_counts_while_it_runs() -> None:
    tree = ProcessTree()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        until(lambda: (tree.cpu(), tree.programs())[1].get(sys.executable.rpartition("/")[2], 0) > 0.05)
        child.kill()
