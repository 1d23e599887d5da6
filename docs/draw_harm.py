"""Draws ``docs/images/harm.svg`` with the probers' own counter: how harm adds up, and what the rule costs.

``python docs/draw_harm.py`` writes it. No test compares the picture, as its bytes depend on the plotting library.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bellwether.core.detection.harm import HarmCounter
from bellwether.core.detection.harm_weighing import Weighing
from bellwether.core.model.history.harm_history import LimitFactor
from bellwether.core.model.history.move_cost import MoveCost

PICTURE = Path(__file__).parent / "images" / "harm.svg"
STEP_SECONDS = 0.25
SHOWN_SECONDS = 20.0
START = datetime(2026, 1, 1, tzinfo=UTC)
COST = MoveCost()

FAULTS = {
    "the listener refuses": lambda _: 1.0,
    "70 % of connections are reset": lambda _: 0.7,
    "down for 2 s, up for 2 s": lambda t: float(t % 4 < 2),
    "one hang of 2 s": lambda t: float(t < 2),
    "20 % of requests are late": lambda _: 0.2,
}
"""Share of lost requests by the seconds since the fault began."""


def main() -> None:
    """Write the picture; the same code makes the same bytes."""
    mpl.rcParams.update({"svg.hashsalt": "bellwether", "svg.fonttype": "none"})
    figure = Figure(figsize=(11, 4), layout="constrained")
    counting, outages = figure.subplots(1, 2)
    _counting(counting)
    _outages(outages)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))


def _counting(panel: Axes) -> None:
    for name, share in FAULTS.items():
        counter, times, lost = HarmCounter().after(0.0, 1.0, START), [0.0], [0.0]
        for at in np.arange(0.0, SHOWN_SECONDS, STEP_SECONDS):
            counter = counter.after(share(at), STEP_SECONDS, START + timedelta(seconds=1 + at + STEP_SECONDS))
            times.append(at + STEP_SECONDS)
            lost.append(counter.lost_seconds)
        panel.plot(times, lost, label=name)
    panel.axhline(COST.seconds, color="black", linestyle=":", linewidth=1)
    panel.text(SHOWN_SECONDS, COST.seconds, "cost of a move", ha="right", va="bottom", fontsize=9)
    panel.set_ylim(0, 4 * COST.seconds)
    panel.set_title("Harm adds up, and fades")
    panel.set_xlabel("seconds since the fault began")
    panel.set_ylabel("seconds of service lost by clients")
    panel.legend(fontsize=8, loc="upper left")


def _outages(panel: Axes) -> None:
    lasted = np.linspace(0.0, SHOWN_SECONDS, 401)
    best = np.minimum(lasted, COST.seconds)
    panel.plot(lasted, best, color="black", label="clairvoyant: bears it, or moves at once")
    panel.plot(lasted, 2 * best, color="grey", linestyle="--", linewidth=1, label="twice that")
    panel.plot(lasted, lasted, color="tab:red", label="never move")
    for factor, style in ((1.0, "-"), (0.5, "--"), (2.0, "--")):
        limit = Weighing(0.0, COST, learned=LimitFactor(factor)).limit_seconds
        paid = np.where(lasted < limit, lasted, limit + COST.seconds)
        name = "move when the harm is the cost" if factor == 1.0 else None
        panel.plot(lasted, paid, color="tab:blue", linestyle=style, linewidth=1.5 if name else 0.8, label=name)
        panel.text(SHOWN_SECONDS, limit + COST.seconds, f"limit {factor:g} x cost", ha="right", va="bottom", fontsize=8)
    panel.set_ylim(0, 4 * COST.seconds)
    panel.set_title("One outage in which every request fails")
    panel.set_xlabel("seconds that the outage lasts")
    panel.set_ylabel("seconds lost, moves included")
    panel.legend(fontsize=8, loc="upper left")


if __name__ == "__main__":
    main()
