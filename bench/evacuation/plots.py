"""Seconds of each contender as a picture: a panel for each number of partitions, median with minimum and maximum."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evacuation.figures import FLOOR, Row

OURS = ("operator", "by hand")


def draw(found: Sequence[Row], path: Path) -> None:
    """How long it takes until no leader is left; the same figures make the same bytes."""
    mpl.rcParams["svg.hashsalt"] = "bellwether"
    moved = [row for row in found if row["work"] == "evacuate"]
    sizes = sorted({row["partitions"] for row in moved})
    figure = Figure(figsize=(4 * len(sizes), 3), layout="constrained")
    for panel, size in zip(np.atleast_1d(figure.subplots(1, len(sizes), sharey=True)), sizes, strict=True):
        _panel(panel, [row for row in moved if row["partitions"] == size])
        panel.set_title(f"{size:,} partitions")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))


def _panel(panel: Axes, rows: Sequence[Row]) -> None:
    for row in rows:
        ours = row["who"].startswith(OURS)
        colour = "tab:green" if row["who"] == FLOOR else "tab:blue" if ours else "tab:red"
        spread = np.array([[row["median"] - row["min"]], [row["max"] - row["median"]]])
        panel.barh(row["who"], row["median"], xerr=spread, color=colour, alpha=0.8)
    panel.invert_yaxis()
    panel.set_xlabel("seconds until the broker leads nothing")
    panel.grid(visible=True, axis="x", alpha=0.3)
