"""The trade-off as a picture: how quick a rule set is against how often it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from monthsim.months import OURS
from monthsim.reports import GOAL_PER_1000, GOAL_SECONDS, STORAGE_RULES

_PANELS = (
    ("Unreachable from outside", "external_faults", "of_reachability", "failureThreshold"),
    ("Slow or stalled disk", "disk_faults", "of_storage", "storage"),
)


def draw(found: dict[str, Any], path: Path) -> None:
    """Two panels, one a kind of fault; the same figures make the same bytes."""
    mpl.rcParams["svg.hashsalt"] = "bellwether"
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    axes = figure.subplots(1, 2)
    for panel, (title, kind, family, prefix) in zip(axes, _PANELS, strict=True):
        _panel(panel, found, kind, family, prefix)
        panel.set_title(title)
    axes[0].axhline(GOAL_PER_1000, color="green", linewidth=0.8, linestyle=":")
    axes[0].axvline(GOAL_SECONDS, color="green", linewidth=0.8, linestyle=":")
    axes[0].set_ylabel("false demotions per 1,000 broker-months\n(bar: up to the exact 95 % upper bound)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def _panel(panel: Axes, found: dict[str, Any], kind: str, family: str, prefix: str) -> None:
    panel.set_xscale("log")
    panel.set_yscale("symlog", linthresh=0.5)
    for name, figures in found["rules"].items():
        silent = (name in STORAGE_RULES) is (kind == "external_faults") and name not in (OURS, "k-of-n")
        if not silent:
            _point(panel, name, figures, kind, family, ours=name == OURS)
    for name, figures in found["tradeoff"].items():
        if name.startswith(prefix):
            _point(panel, name, figures, kind, family, ours=True, small=True)
    panel.set_xlabel("median seconds from fault to demotion (number: faults missed)")
    panel.set_ylim(bottom=0)
    panel.grid(visible=True, which="major", alpha=0.3)


def _point(
    panel: Axes, name: str, figures: dict[str, Any], kind: str, family: str, *, ours: bool, small: bool = False
) -> None:
    faults, false = figures[kind], figures["false_demotions"][family]
    if faults["median_seconds"] is None:
        return
    x, y, top = faults["median_seconds"], false["per_1000_broker_months"], false["upper_bound_95"]
    colour = "tab:blue" if ours else "tab:red"
    panel.errorbar(
        x, y, yerr=[[0], [top - y]], fmt="o", color=colour, markersize=4 if small else 7, alpha=0.6 if small else 1
    )
    missed = faults["missed"] / faults["injected"]
    label = f"{name} ({missed:.0%} missed)" if faults["missed"] else name
    panel.annotate(label, (x, y), xytext=(5, 5), textcoords="offset points", fontsize=7 if small else 9, color=colour)
