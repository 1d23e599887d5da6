"""``python -m cures``: play each fault with each cure, measure each kind of client, report, and leave nothing running.

``cures.json`` has a row for each fault, kind of clients, load, number of replica fetchers and cure. Exit status: 0 when
no acknowledged record was lost, 1 otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from bellwether.ports.errors import BellwetherError
from cures import faults, freezer, throttled_disk
from cures.by_hand import CURES, Undo
from cures.clients import Kind
from cures.faults import FAULTS, Fault
from cures.losses import rows
from cures.stage import AGENT, LOADS, NO_AGENT, TICK, TOPICS, Layout, Stage
from cures.tables import markdown
from cures.traffic import Sent
from faults.report import commit
from realparts.apiserver import ApiServer

ROOT = Path(__file__).resolve().parents[2]
FAULT_SECONDS = 40.0
DETECTION_SECONDS = 3.0
"""How long after the fault a cure is taken by hand."""
WARM_UP_SECONDS = 8.0
DEFAULTS = (NO_AGENT, AGENT)
KEY = ("fault", "clients", "load", "fetchers", "cure")


def main() -> int:
    """Play what is asked for; rows of others stay as they were."""
    parser = argparse.ArgumentParser(prog="python -m cures", description=__doc__)
    parser.add_argument("--fault", choices=FAULTS, action="append", help="this fault; may be repeated (default: all)")
    cures = (*CURES, *DEFAULTS)
    parser.add_argument("--cure", choices=cures, action="append", help="this cure; may be repeated (default: all)")
    parser.add_argument("--load", choices=LOADS, action="append", help="this load; may be repeated (default: light)")
    parser.add_argument("--fetchers", type=int, action="append", help="num.replica.fetchers (default: 1)")
    parser.add_argument("--repeat", type=int, default=1, help="how often each is played (%(default)s)")
    parser.add_argument("--seconds", type=float, default=FAULT_SECONDS, help="length of a fault (%(default)s)")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports", help="folder for the figures (%(default)s)")
    chosen = parser.parse_args()
    chosen.cure = chosen.cure or list(cures)
    played, lost = list[dict[str, Any]](), list[str]()
    with ApiServer() as server:
        server.apply(*sorted((ROOT / "crds").glob("*.yaml")))
        for layout, wanted in layouts(chosen):
            logs = (
                chosen.reports / "cures-logs" / f"{layout.load.name}-{layout.operator or 'by-hand'}".replace(", ", "-")
            )
            by_hand = [c for c in CURES if c in chosen.cure] if not layout.operator else ["default"]
            with Stage(layout, server, logs) as stage:
                time.sleep(WARM_UP_SECONDS)
                for fault, cure, number in product(wanted, by_hand, range(chosen.repeat)):
                    if cure == "directory-demotion" and fault.directories == 1:
                        continue
                    played += play(stage, fault, cure, chosen.seconds, number)
                lost += [lost_in(one, played) for one in stage.clients.finish()]
                played = completed(stage, played)
            save(chosen.reports / "cures.json", played)
    print(markdown(json.loads((chosen.reports / "cures.json").read_text())["rows"]))
    print("\n".join(lost))
    print(f"acknowledged with acks=all and lost: {len(lost)}; figures: {chosen.reports / 'cures.json'}")
    return 1 if lost else 0


def layouts(chosen: argparse.Namespace) -> Iterator[tuple[Layout, list[Fault]]]:
    """The stages that are needed, with the faults that each can play."""
    wanted = [FAULTS[name] for name in chosen.fault or FAULTS]
    for why, left_out in (
        (throttled_disk.unavailable(), [fault for fault in wanted if fault.device]),
        (freezer.unavailable(), [fault for fault in wanted if fault.freezes]),
    ):
        if why and left_out:
            print(f"left out, as {why}: {', '.join(fault.name for fault in left_out)}", flush=True)
            wanted = [fault for fault in wanted if fault not in left_out]
    operators = [operator for operator in DEFAULTS if operator in chosen.cure]
    if any(cure in CURES for cure in chosen.cure):
        operators.insert(0, "")
    for load, fetchers, operator in product(chosen.load or ["light"], chosen.fetchers or [1], operators):
        made: dict[Layout, list[Fault]] = {}
        for fault in wanted:
            layout = Layout(LOADS[load], fetchers, operator, fault.payload, fault.device, fault.directories, fault.pair)
            made.setdefault(layout, []).append(fault)
        yield from made.items()


def play(stage: Stage, fault: Fault, cure: str, seconds: float, number: int) -> list[dict[str, Any]]:
    """Play one fault with one cure: what happened when, as a row that ``completed`` makes into one for each class."""
    stage.settle()
    stage.fault = fault
    time.sleep(2)
    begin = time.monotonic()
    fault.begin(stage)
    with Watch(stage, begin) as watch:
        if cure == "default":
            undo: Undo | None = None
        else:
            stage.rest(DETECTION_SECONDS)
            undo = CURES[cure](stage)
        stage.rest(begin + seconds - time.monotonic())
    end = time.monotonic()
    faults.end(stage)
    if undo is not None:
        undo()
    stage.every_tick = None
    well = stage.settle()
    row = {
        "fault": fault.name,
        "load": stage.layout.load.name,
        "fetchers": stage.layout.fetchers,
        "cure": cure if cure != "default" else stage.layout.operator,
        "run": number,
        **watch.seen,
        "well_again_after": round(well, 1),
        "_times": (begin, end, time.monotonic()),
    }
    print(json.dumps({name: value for name, value in row.items() if name != "_times"}), flush=True)
    return [row]


class Watch(threading.Thread):
    """When the sick broker came to lead nothing and to be in no ISR until the end, in seconds since ``begin``."""

    def __init__(self, stage: Stage, begin: float) -> None:
        super().__init__(daemon=True)
        self.seen: dict[str, float] = {}
        self._stage, self._begin, self._over = stage, begin, threading.Event()

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        """Look until the end of the fault."""
        while not self._over.wait(TICK):
            with contextlib.suppress(BellwetherError):
                for name, reached in zip(("leads_nothing_after", "in_no_isr_after"), self._stage.out(), strict=True):
                    if reached:
                        self.seen.setdefault(name, round(time.monotonic() - self._begin, 1))
                    else:
                        self.seen.pop(name, None)


def lost_in(one: Sent, played: Sequence[dict[str, Any]]) -> str:
    """What was played when a record was due that was acknowledged and is gone."""
    last = [row for row in played if "_times" in row and row["_times"][0] <= one.due]
    when = f"{last[-1]['fault']}, {last[-1]['cure']}, {one.due - last[-1]['_times'][0]:.1f} s" if last else "before"
    return f"lost: partition {one.partition}, key {one.key!r}, {when} into the fault, took {one.seconds:.1f} s"


def completed(stage: Stage, played: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows for each class of clients, now that all requests are done."""
    sent = {kind: stage.clients.sent(kind) for kind in Kind}
    topic = {kind: TOPICS[0] if kind is Kind.ALL else TOPICS[1] for kind in Kind}
    led = {kind: frozenset(n.partition for n in stage.led if n.topic == topic[kind]) for kind in Kind}
    found = []
    for row in played:
        if "_times" not in row:
            found.append(row)
            continue
        begin, end, well = row["_times"]
        rest = {name: value for name, value in row.items() if name != "_times"}
        cured = begin + row.get("leads_nothing_after", end - begin)
        afterwards = rows(sent, led, cured, end)
        back = rows(sent, led, end, well)
        for one, after, returning in zip(rows(sent, led, begin, end), afterwards, back, strict=True):
            found.append(
                {
                    **rest,
                    **one,
                    "lost_once_it_led_nothing": after["lost_seconds"],
                    "lost_on_the_way_back": returning["lost_seconds"],
                }
            )
    return found


def save(report: Path, played: Sequence[dict[str, Any]]) -> None:
    """Put these rows among those of others: the mean of the runs, the largest distance from it, and what is lost
    without a cure.
    """
    known = json.loads(report.read_text())["rows"] if report.exists() else []
    by_key = {tuple(row[name] for name in KEY): row for row in known}
    runs: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in played:
        runs.setdefault(tuple(row[name] for name in KEY), []).append(row)
    for key, several in runs.items():
        lost = [row["lost_seconds"] for row in several]
        mean = statistics.mean(lost)
        by_key[key] = {
            **{name: value for name, value in several[-1].items() if name != "run"},
            "lost_seconds": round(mean, 1),
            "spread_seconds": round(max(abs(one - mean) for one in lost), 1),
            "runs": len(several),
            "commit": commit(),
        }
    without = {key[:-1]: row["lost_seconds"] for key, row in by_key.items() if key[-1] == "nothing"}
    for key, row in by_key.items():
        row["lost_seconds_without"] = without.get(key[:-1])
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(json.dumps({"rows": [by_key[key] for key in sorted(by_key)]}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
