"""The operator and the load side are apart: what each verb imports, in a process of its own, and how they meet."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from bellwether.ports import rebalance
from bellwether.ports.errors import Terminal

ABSENT = ("numpy", "pandas", "pyarrow", "pyspark", "scipy")
"""What only the load side needs."""


def imported_with(*modules: str) -> list[str]:
    """Imports of the load side that come with these modules, where nothing is installed that only it needs."""
    program = (
        "import sys, importlib\n"
        f"sys.modules.update(dict.fromkeys({ABSENT!r}))\n"
        f"for module in {modules!r}: importlib.import_module(module)\n"
        "print(*sorted(m for m in sys.modules if m.startswith('bellwether_load')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    "modules",
    [
        ("bellwether.cli.installation.operate", "bellwether.controllers.policy_manager"),
        ("bellwether.controllers.reporting.status_reporter", "bellwether.telemetry.metrics.operator_metrics"),
        ("bellwether.reconcile",),
        ("bellwether.cli.policies.diff", "bellwether.simulation.forecast"),
        ("bellwether.cli.planning.plan", "bellwether.cli.planning.policy_inputs"),
    ],
    ids=["operator", "reporting", "reconcile", "diff", "plan"],
)
def test_the_operator_runs_without_the_load_side_and_its_libraries(modules: tuple[str, ...]) -> None:
    assert imported_with(*modules) == []


def test_policy_without_rebalance_needs_no_library_of_load_side() -> None:
    assert "bellwether_load.controller.rebalance_controller" in imported_with("bellwether_load.load_side")


def test_the_installed_load_side_is_found() -> None:
    side = rebalance.load_side()
    assert side.__class__.__module__ == "bellwether_load.load_side"


def test_a_missing_load_side_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[EntryPoint] = []
    monkeypatch.setattr("bellwether.ports.rebalance.entry_points", lambda group: found)  # noqa: ARG005
    with pytest.raises(Terminal, match="install bellwether-kafka with the extra load"):
        rebalance.load_side()
