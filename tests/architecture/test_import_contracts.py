"""The contracts of ``.importlinter``: who may import whom. The drawing of the system, executed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sourcetree import ROOT
from waiting import limit

RECORDING = "Recorder and replays are built on traces, never the reverse"
CORE = "Inside the core a stage imports only the stages below it"


def broken_contracts(root: Path) -> str:
    """What import-linter says of the tree at ``root``; empty when all contracts are kept."""
    path = os.pathsep.join(str(root / folder) for folder in ("operator", "spark"))
    environment = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"}
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--config", root / ".importlinter", "--no-cache"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=limit(300),
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.fixture
def copied_tree(tmp_path: Path) -> Path:
    for folder in ("operator", "spark"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", tmp_path)
    return tmp_path


def add_import(root: Path, module: str, statement: str, package: str = "operator/bellwether") -> None:
    path = root / package / module
    path.write_text(
        path.read_text().replace(
            "from __future__ import annotations\n", f"from __future__ import annotations\n{statement}\n"
        )
    )


def test_every_import_contract_is_kept() -> None:
    assert broken_contracts(ROOT) == ""


@pytest.mark.parametrize(
    ("module", "statement", "contract"),
    [
        ("core/model/cluster.py", "from bellwether.core.planning import plan", CORE),
        ("core/detection/verdicts.py", "from bellwether.core.doctor import risks", CORE),
        ("core/signals.py", "from bellwether.core import reasons", CORE),
        ("core/signals.py", "from bellwether import ports", "the core knows nobody"),
        ("recording/traces/trace_lines.py", "from bellwether.recording import replay", RECORDING),
        (
            "plan_verifier/load_bounds.py",
            "from bellwether.core.rebalance import rebalance_plan",
            "the core knows nobody",
        ),
        ("reconcile.py", "import confluent_kafka", "Kafka clients stay behind the Kafka adapter"),
        ("reconcile.py", "import pyarrow", "Parquet and its file systems stay behind the adapter"),
        ("sampling/rows.py", "from bellwether.adapters import store", "the core knows nobody"),
        ("reconcile.py", "from bellwether import testing", "The cycle meets the world only through ports"),
    ],
)
def test_an_import_against_a_contract_is_found(copied_tree: Path, module: str, statement: str, contract: str) -> None:
    add_import(copied_tree, module, statement)
    # Long contract names are wrapped.
    said = " ".join(broken_contracts(copied_tree).split())
    assert f"{contract} BROKEN" in said


@pytest.mark.parametrize(
    ("module", "statement", "contract"),
    [
        ("jobs/reading.py", "import kafka", "The jobs know the store, the clock and the core's words"),
        (
            "jobs/loads.py",
            "from bellwether.controllers import policy_controller",
            "The jobs know the store, the clock and the core's words",
        ),
        ("transforms/loads.py", "import pathlib", "From frame to frame there is no IO"),
        (
            "transforms/loads.py",
            "from bellwether.adapters.store.samples import sample_files",
            "From frame to frame there is no IO",
        ),
        ("histories/sizes.py", "import pyarrow", "What histories say is arithmetic: numpy alone"),
    ],
)
def test_an_import_of_a_job_against_a_contract_is_found(
    copied_tree: Path, module: str, statement: str, contract: str
) -> None:
    add_import(copied_tree, module, statement, "spark/bellwether_load")
    said = " ".join(broken_contracts(copied_tree).split())
    assert f"{contract}" in said
    assert "BROKEN" in said.partition(contract)[2].partition(" KEPT")[0]


def test_a_new_stage_must_find_its_place_in_the_flow(copied_tree: Path) -> None:
    (copied_tree / "operator" / "bellwether" / "core" / "afterthoughts.py").write_text(
        '"""A stage that nobody placed."""\n'
    )
    assert "afterthoughts" in broken_contracts(copied_tree)
