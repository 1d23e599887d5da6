"""The command line inside its container: own user, read-only root, no capability."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from bellwether import __version__
from images.recipe import ROOT
from images.running import Container, Room, Unpacked
from waiting import until

pytestmark = pytest.mark.image

PYTHON = Room(entrypoint=["/usr/bin/tini", "--", "python", "-c"])


@pytest.fixture
def operator(images: Callable[[str], Unpacked]) -> Unpacked:
    return images("operator")


def test_the_default_is_to_explain_itself(operator: Unpacked, start: Any) -> None:
    container = start(operator, *operator.image.settings["config"]["Cmd"])
    assert container.wait(60) == 0, container.said()
    assert "Usage: bellwether" in container.said()


def test_it_tells_its_version(operator: Unpacked, start: Any) -> None:
    container = start(operator, "--version")
    assert container.wait(60) == 0
    assert container.said().strip() == f"bellwether {__version__}"


def test_it_prints_the_resource_definitions_of_this_version(operator: Unpacked, start: Any) -> None:
    container = start(operator, "crds")
    assert container.wait(60) == 0, container.said()
    printed = {body["metadata"]["name"]: body for body in yaml.safe_load_all(container.said()) if body}
    ours = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))]
    assert printed == {body["metadata"]["name"]: body for body in ours}


def test_every_module_of_ours_can_be_imported(either: Unpacked, start: Any) -> None:
    program = """
import importlib, pkgutil, bellwether
names = [m.name for m in pkgutil.walk_packages(bellwether.__path__, "bellwether.") if not m.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
import pyarrow.dataset, pyarrow.fs, pyarrow.parquet
print(len(names), "imported")
"""
    container = start(either, program, room=PYTHON)
    assert container.wait(120) == 0, container.said()
    assert int(container.said().split()[-2]) > 150


def test_it_has_no_rights_and_can_write_in_tmp_alone(either: Unpacked, start: Any) -> None:
    program = """
import os
from pathlib import Path
status = dict(line.split(":\\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\\t" in line)
print(os.getuid(), os.getgid(), {int(status[f"Cap{k}"], 16) for k in ("Inh", "Prm", "Eff", "Bnd", "Amb")})
for folder in ("/", "/etc", "/opt/bellwether", "/usr/bin", "/var", "/tmp"):
    try:
        Path(folder, "probe").write_text("x")
        print("wrote to", folder)
    except OSError:
        pass
"""
    container = start(either, program, room=PYTHON)
    assert container.wait(60) == 0, container.said()
    assert container.said().splitlines() == ["10001 10001 {0}", "wrote to /tmp"]


def test_command_without_handler_of_its_own_ends_on_sigterm(operator: Unpacked, start: Any) -> None:
    container = start(operator, "import time; print('asleep', flush=True); time.sleep(300)", room=PYTHON)
    until_said(container, "asleep")
    container.terminate()
    assert container.wait(60) == 143  # it would have slept on for minutes


def test_orphans_are_collected(operator: Unpacked, start: Any) -> None:
    program = """
import subprocess, time
from pathlib import Path
begin = "sleep 0.3 >/dev/null & echo $!"
done = subprocess.run(["bash", "-c", begin], check=True, stdout=subprocess.PIPE, text=True)
orphan = Path("/proc") / done.stdout.strip()
last = time.monotonic() + 30
while orphan.exists():  # also while it has ended and was not collected
    assert time.monotonic() < last, (orphan / "stat").read_text()
    time.sleep(0.1)
"""
    container = start(operator, program, room=PYTHON)
    assert container.wait(60) == 0, container.said()


def test_wrong_usage_is_a_message_and_status_2(operator: Unpacked, start: Any) -> None:
    container = start(operator, "operater")
    assert container.wait(60) == 2
    assert "No such command" in container.said()


def test_an_operator_without_a_cluster_says_what_it_lacks(operator: Unpacked, start: Any) -> None:
    container = start(operator, "operator")
    assert container.wait(60) == 1
    assert "KUBECONFIG" in container.said()
    assert "Traceback" not in container.said()


def until_said(container: Container, text: str, seconds: float = 60) -> None:
    until(lambda: text in container.said(), seconds, alive=lambda: container.running, seen=container.said)


def test_a_container_that_ends_leaves_nothing_to_runc(operator: Unpacked, start: Any) -> None:
    container = start(operator, "--version")
    container.wait(60)
    with pytest.raises(subprocess.CalledProcessError):
        container.pids()
