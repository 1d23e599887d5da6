"""The contracts of ``.importlinter``: who may import whom. The drawing of the system, executed."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from sourcetree import ROOT, sources
from waiting import ran

LAYERS = "Entry points drive the reconcile; it reaches the cluster through ports; the core imports nothing above it"
CORE = "Inside the core a stage imports only the stages below it"
RECORDING = "The recorder is built on traces, never the reverse"
CLIENTS = "Kafka clients stay behind the Kafka adapter"
LOAD = "The operator imports nothing of the load side, and nothing that only the load side needs"
LOAD_LAYERS = "The load side imports downwards: from verbs and controller to stores, plans and histories"
PARQUET = "Parquet and its file systems stay behind the store and the jobs"
PORTS = "The reconcile reaches clusters only through ports"
JOBS = "The jobs import the store, the clock and the core, nothing else of the operator"
TRANSFORMS = "Transforms of frames do no IO"
HISTORIES = "Histories import numpy alone"

PLANTED = (
    ("bellwether.core.model.cluster", "bellwether.core.planning.plan", CORE),
    ("bellwether.core.detection.verdicts", "bellwether.core.doctor.risks", CORE),
    ("bellwether.core.reasons", "bellwether.core.signals", CORE),
    ("bellwether.core.signals", "bellwether.ports", LAYERS),
    ("bellwether.recording.traces.trace_lines", "bellwether.recording.recorder", RECORDING),
    ("bellwether.controllers.session", "bellwether_load.plan.problem", LOAD),
    ("bellwether.gather", "numpy", LOAD),
    ("bellwether.reconcile", "confluent_kafka", CLIENTS),
    ("bellwether_load.controller.lifecycle", "pyarrow", PARQUET),
    ("bellwether_load.store.samples.sample_files", "bellwether_load.sampling", LOAD_LAYERS),
    ("bellwether.reconcile", "bellwether.simulation", PORTS),
    ("bellwether_load.jobs.load_parts", "kafka", JOBS),
    ("bellwether_load.jobs.loads", "bellwether.controllers.policy_controller", JOBS),
    ("bellwether_load.balancing.moves", "pathlib", TRANSFORMS),
    ("bellwether_load.balancing.moves", "bellwether_load.store.samples.sample_files", TRANSFORMS),
    ("bellwether_load.histories.sizes", "pyarrow", HISTORIES),
)
"""Imports that a contract forbids: of the first module, the second."""

PROBES = "operator/bellwether/probes"
WITH_IO = re.compile(r"^ *(?:from|import) bellwether(?:\.| import .*)\b(?:adapters|probes\.runtime)\b", re.MULTILINE)


def broken_contracts(root: Path) -> dict[str, str]:
    """What import-linter finds in the tree at ``root``: the text of each broken contract, by its name."""
    path = os.pathsep.join(str(root / folder) for folder in ("operator", "spark"))
    environment = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "1000"}
    done = ran(
        [Path(sys.executable).parent / "lint-imports", "--config", root / ".importlinter", "--no-cache"],
        300,
        cwd=root,
        env=environment,
    )
    if done.returncode == 0:
        return {}
    lines = done.stdout.partition("Broken contracts")[2].splitlines()
    titles = [number for number, line in enumerate(lines[1:]) if line and set(lines[number + 1]) == {"-"}][1:]
    assert titles, done.stdout + done.stderr
    return {
        lines[number]: "\n".join(lines[number + 2 : after])
        for number, after in zip(titles, [*titles[1:], None], strict=True)
    }


@pytest.fixture(scope="module")
def violations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What import-linter finds in a copy of the tree with everything planted at once."""
    root = tmp_path_factory.mktemp("planted")
    for folder in ("operator", "spark"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", root)
    for module, imported, _contract in PLANTED:
        folder = "spark" if module.startswith("bellwether_load") else "operator"
        path = (root / folder).joinpath(*module.split(".")).with_suffix(".py")
        future = "from __future__ import annotations\n"
        path.write_text(path.read_text().replace(future, f"{future}import {imported}\n", 1))
    (root / "operator" / "bellwether" / "core" / "afterthoughts.py").write_text('"""A stage without a place."""\n')
    return broken_contracts(root)


def probes_with_io(root: Path) -> list[str]:
    """Modules of probes that import an adapter or the processes of probers, which alone do so."""
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sources(root)}
    mine = {place for place in texts if place.startswith(f"{PROBES}/") and not place.startswith(f"{PROBES}/runtime/")}
    return sorted(place for place in mine if WITH_IO.search(texts[place]))


def test_what_measures_imports_no_adapter(tmp_path: Path) -> None:
    assert probes_with_io(ROOT) == []
    for place in ("clocks", "runtime"):
        (tmp_path / PROBES / place).mkdir(parents=True)
        (tmp_path / PROBES / place / "late.py").write_text("def f():\n    from bellwether.adapters import clocks\n")
    assert probes_with_io(tmp_path) == [f"{PROBES}/clocks/late.py"]


def test_every_import_contract_is_kept() -> None:
    assert broken_contracts(ROOT) == {}


@pytest.mark.parametrize(("module", "imported", "contract"), PLANTED)
def test_an_import_against_a_contract_is_found(
    violations: dict[str, str], module: str, imported: str, contract: str
) -> None:
    assert f"{module} -> {imported} (l." in violations[contract]


def test_a_new_stage_must_find_its_place_in_the_flow(violations: dict[str, str]) -> None:
    assert "- bellwether.core.afterthoughts" in violations[CORE]
