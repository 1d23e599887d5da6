"""``python -m monthsim``: the simulated month, its report and its picture. Started by ``make bench-detection``."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import click

from monthsim import campaign, pages, plots, replays, reports
from monthsim.models import MODELS, STANDARD

REPORT = Path("reports/detection.json")
PICTURE = Path("docs/images/detection-tradeoff.svg")
PAGE = Path("docs/internals/detection-benchmark.md")


@click.command(help=__doc__)
@click.option("--broker-months", default=campaign.DEFAULT_BROKER_MONTHS, show_default=True, help="Of the main run.")
@click.option("--seed", default=20_261, show_default=True, help="Another seed is another world of the same kind.")
@click.option("--processes", default=os.cpu_count() or 1, show_default="all cores")
@click.option(
    "--quick", is_flag=True, help="The main run and the fault models: no sensitivity, no trade-off, no picture."
)
@click.option("--redraw", is_flag=True, help="Nothing but the page and the picture, from the report as it is.")
@click.option(
    "--replay", metavar="SEED", help="Tell one month's false demotions, by the seed in the report's examples."
)
def main(broker_months: int, seed: int, processes: int, quick: bool, redraw: bool, replay: str | None) -> None:
    """Run, write and print."""
    if replay:
        for line in replays.tell(tuple(int(n) for n in replay.split(","))):
            print(line)
        return
    if redraw:
        _illustrate(json.loads(REPORT.read_text(encoding="utf-8")))
        return
    began = time.monotonic()
    jobs = campaign.main_jobs(broker_months, seed)
    jobs += campaign.model_jobs(campaign.MODEL_BROKER_MONTHS, seed + 1)
    if not quick:
        jobs += campaign.sensitivity_jobs(campaign.SENSITIVITY_BROKER_MONTHS, seed)
        jobs += campaign.variant_jobs(campaign.VARIANT_BROKER_MONTHS, seed)
    found = campaign.run(jobs, processes, lambda done: _progress(done, len(jobs)))
    models = {name: found.pop(campaign.MODEL + name) for name in MODELS}
    variants = {name: found.pop(name) for name in campaign.variants() if name in found}
    made = {
        "seed": seed,
        "broker_months": found[""]["bellwether"].broker_months,
        "broker_months_of_a_model": models[STANDARD]["bellwether"].broker_months,
        "broker_months_of_a_sensitivity_run": 0 if quick else campaign.SENSITIVITY_BROKER_MONTHS,
        "broker_months_of_a_tradeoff_run": 0 if quick else campaign.VARIANT_BROKER_MONTHS,
        "seconds": round(time.monotonic() - began, 1),
        "processes": processes,
    }
    noted = reports.report(found.pop(""), found, variants, models, made)
    reports.save(noted, REPORT)
    if not quick:
        _illustrate(noted)
    for line in reports.lines(noted):
        print(line)
    print(f"{REPORT} written after {made['seconds']} s")


def _illustrate(noted: reports.Figures) -> None:
    plots.draw(noted, PICTURE)
    pages.write(noted, PAGE)


def _progress(done: int, whole: int) -> None:
    if sys.stderr.isatty() or done % 200 == 0 or done == whole:
        print(f"\r{done} of {whole} clusters' months", end="" if sys.stderr.isatty() else "\n", file=sys.stderr)


if __name__ == "__main__":
    main()
