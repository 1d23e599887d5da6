"""The trade-off as a picture: how quick a rule set is against how often it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from monthsim.months import OURS
from monthsim.reports import GOAL_PER_1000, STORAGE_RULES

_PANELS = (
    ("Unreachable from outside", "external_faults", "of_reachability", "tolerance"),
    ("Slow or stalled disk", "disk_faults", "of_storage", "tolerance"),
)
_LEFT_OF = 0.6
_Place = tuple[float, float, float, bool]


def draw(found: dict[str, Any], path: Path) -> None:
    """Two panels, one a kind of fault; the same figures make the same bytes."""
    mpl.rcParams["svg.hashsalt"] = "bellwether"
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    axes = figure.subplots(1, 2)
    for panel, (title, kind, family, prefix) in zip(axes, _PANELS, strict=True):
        _panel(panel, found, kind, family, prefix)
        panel.set_title(title)
    axes[0].set_ylabel("spurious demotions per 1,000 broker-months\n(bar: up to the exact 95 % upper bound)")
    path.parent.mkdir(parents=True, exist_ok=True)
    unsaid = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(path, metadata=unsaid if path.suffix == ".svg" else None)


def _panel(panel: Axes, found: dict[str, Any], kind: str, family: str, prefix: str) -> None:
    panel.set_xscale("log")
    panel.set_yscale("symlog", linthresh=0.5)
    noted: dict[_Place, list[str]] = {}
    for name, figures in found["rules"].items():
        if name in (OURS, "k-of-n") or (name in STORAGE_RULES) is (kind == "disk_faults"):
            _note(noted, name, figures, kind, family, small=False)
    for name, figures in found["tradeoff"].items():
        if name.startswith(prefix):
            _note(noted, name, figures, kind, family, small=True)
    furthest = max((place[0] for place in noted), default=1.0)
    nearest = min((place[0] for place in noted), default=1.0)
    for number, (place, names) in enumerate(noted.items()):
        left = place[0] > nearest * (furthest / nearest) ** _LEFT_OF
        _point(panel, place, names, to_the_left=left, below=number % 2 == 0)
    panel.axhline(GOAL_PER_1000, color="green", linewidth=0.8, linestyle=":")
    panel.set_xlabel("median seconds from fault to demotion")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    panel.xaxis.set_minor_formatter(FuncFormatter(lambda x, _: f"{x:g}" if furthest < 10 * nearest else ""))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    panel.set_ylim(0, 20_000)
    panel.grid(visible=True, which="major", alpha=0.3)


def _note(
    noted: dict[_Place, list[str]], name: str, figures: dict[str, Any], kind: str, family: str, *, small: bool
) -> None:
    """Rule sets that come out the same share a point."""
    faults, false = figures[kind], figures["false_demotions"][family]
    if faults["median_seconds"] is None:
        return
    missed = faults["missed"] / faults["injected"]
    place = faults["median_seconds"], false["per_1000_broker_months"], false["upper_bound_95"], small
    noted.setdefault(place, []).append(f"{name} ({missed:.0%} missed)" if missed >= 0.005 else name)


def _point(panel: Axes, place: _Place, names: list[str], *, to_the_left: bool, below: bool) -> None:
    x, y, top, small = place
    ours = small or names[0] == OURS
    colour = "tab:blue" if ours else "tab:red"
    size, alpha = (4, 0.6) if small else (7, 1.0)
    panel.errorbar(x, y, yerr=np.array([[0.0], [top - y]]), fmt="o", color=colour, markersize=size, alpha=alpha)
    panel.annotate(
        "\n".join(names),
        (x, y),
        xytext=(-6 if to_the_left else 6, -9 if below and ours else 3),
        textcoords="offset points",
        horizontalalignment="right" if to_the_left else "left",
        fontsize=7 if small else 9,
        color=colour,
    )
