"""The report for people: the answer first, then one table, what falls short, and the invariants.

In: the report. Out: text and tables of at most 80 columns on the console. Called by ``__main__`` at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from demo.faults import FaultKind, Window
from demo.latencies import spoken
from demo.report import Report
from demo.samples import SLOW_SECONDS, Kind

Figures = dict[str, Any]
COLUMNS = {
    "before": 7,
    "without\nBellwether": 10,
    "until\nleaders\nleft": 7,
    "leaders\ngone": 7,
    "restored": 8,
}
"""Headings and widths of the columns with figures: all fit 80 columns."""


def show(console: Console, report: Report, broken: Sequence[str]) -> None:
    """Print the answer, the figures, what falls short, and what was broken."""
    console.print()
    for sentence in broken:
        console.print(f"BROKEN  {sentence}", style="bold red", highlight=False, markup=False)
    for sentence in answers(report):
        console.print(sentence, style="bold", highlight=False, markup=False)
    console.print(compared(report))
    for sentence in shortcomings(report):
        console.print(Padding(f"· {sentence}", (0, 0, 0, 2)), highlight=False, markup=False)
    if report["repeated"]:
        console.print(repetitions(report["repeated"]))
    console.print(invariants(report))
    if not broken:
        console.print("Every invariant held.", style="bold green")


def answers(report: Report) -> Iterator[str]:
    """What a person wants to know, a sentence each."""
    controls = {f["fault"]: f for f in report["faults"] if not f["acting"]}
    for fault in report["faults"]:
        if not fault["acting"] or fault["seconds_to_zero_leaders"] is None:
            continue
        text = (
            f"{fault['fault'].capitalize()}: all {fault['partitions_led']:,} leaders left broker {fault['broker']} in "
            f"{fault['seconds_to_zero_leaders']:.1f} s"
        )
        if (control := controls.get(fault["fault"])) is not None and control["seconds_broken"] is not None:
            text += (
                f"; without Bellwether none had left after {control['seconds_broken']:.1f} s, when the demo repaired it"
            )
        if fault["seconds_to_out_of_isr"] is not None:
            text += f"; {fault['seconds_to_out_of_isr']:.1f} s after the fault it was held and in no ISR"
        if fault["seconds_to_in_place"] is not None:
            text += f". They were back {fault['seconds_to_in_place']:.1f} s after the repair"
        yield text + "."
        if fault["seconds_to_out_of_isr"] is not None:
            yield f"acks=all next to broker {fault['broker']}, p50: {_cure(fault)}."
    lost = (report["acknowledged_lost"] or {}).get(Kind.ACKS_ALL.value)
    if lost is not None:
        yield f"{lost['lost']:,} of {lost['acknowledged']:,} records acknowledged with acks=all are lost."
    yield (
        f"{report['orders_restored']:,} of {report['orders_total']:,} partitions have the replica order of the start "
        f"({report['internal_partitions']:,} of them are Kafka's own, for consumer offsets)."
    )


def compared(report: Report) -> Table:
    """p99 of each kind, without Bellwether and with it."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("p99", width=22)
    for name, width in COLUMNS.items():
        table.add_column(name, justify="right", width=width, no_wrap=True)
    controls = {f["fault"]: f for f in report["faults"] if not f["acting"]}
    shown: set[str] = set()
    for fault in report["faults"]:
        if not fault["acting"] or fault["fault"] in shown:
            continue
        shown.add(fault["fault"])
        table.add_row(f"[bold]{fault['fault'].removeprefix('external ')}, broker {fault['broker']}")
        for row in _rows(fault, controls.get(fault["fault"])):
            table.add_row(*row)
        table.add_section()
    return table


def shortcomings(report: Report) -> Iterator[str]:
    """What the figures do not show by themselves, or what is not good about them."""
    if (before := _busy(report)) is not None:
        yield (
            f"This machine was busy: before any fault, acks=1 had a p99 of {spoken(before)} already, so the latencies "
            "of this run say little. Run it again with fewer other programs, or with a lower --rate."
        )
    for fault in report["faults"]:
        if fault["fault"] == FaultKind.STORAGE.value:
            yield (
                "The slow disk has no second run without Bellwether: until the leaders left, nothing had been changed, "
                "so that column is what clients feel without it."
            )
            break
    if any(fault["seconds_to_out_of_isr"] is not None for fault in report["faults"]):
        yield (
            "A held broker is down: it was shut down in order, and was started again when its disk was fast. "
            "spec.quarantine is off by default, and needs an agent next to each broker."
        )
    lost = (report["acknowledged_lost"] or {}).get(Kind.ACKS_1.value)
    if lost is not None and lost["lost"]:
        yield (
            f"{lost['lost']:,} of {lost['acknowledged']:,} records acknowledged with acks=1 are lost: "
            "Kafka promises nothing for acks=1 when leadership moves."
        )


def repetitions(repeated: Figures) -> Table:
    """Median and worst over the repetitions."""
    table = Table(title="Repeated", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("fault")
    for name in ("runs", "to 0 leaders, median", "worst", "back in place, median", "worst"):
        table.add_column(name, justify="right")
    for kind, figures in repeated.items():
        zero, back = figures["seconds_to_zero_leaders"], figures["seconds_to_in_place"]
        seconds = (_seconds(x) for x in (zero["median"], zero["worst"], back["median"], back["worst"]))
        table.add_row(kind, str(figures["runs"]), *seconds)
    return table


def invariants(report: Report) -> Table:
    """What must be zero, or all."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("invariant", width=52)
    table.add_column("seen", justify="right")
    table.add_column("must be", justify="right")
    table.add_row("replica sets changed", str(report["replica_sets_changed"]), "0")
    table.add_row("partitions without a leader at some time", str(report["offline_partitions"]), "0")
    table.add_row("replica orders as at the start", f"{report['orders_restored']:,}", f"{report['orders_total']:,}")
    for control in (f for f in report["faults"] if not f["acting"]):
        table.add_row("leaders moved while Bellwether only observed", str(control["partitions_moved"]), "0")
    lost = (report["acknowledged_lost"] or {}).get(Kind.ACKS_ALL.value)
    if lost is not None:
        table.add_row(f"lost of {lost['acknowledged']:,} records acknowledged with acks=all", str(lost["lost"]), "0")
    return table


def _rows(fault: Figures, control: Figures | None) -> Iterator[list[str]]:
    windows = (Window.DURING, Window.AFTER, Window.RESTORED)
    for kind in Kind:
        of = fault["latency"][kind.value]
        before = (control or fault)["latency"][kind.value]
        without = control["latency"][kind.value] if control else {}
        cells = [_p99(before, Window.BEFORE), _p99(without, Window.DURING)]
        yield [f"  {kind.value}", *cells, *(_p99(of, window) for window in windows)]
    without = _late(control, Window.DURING) if control else "-"
    yield ["  over 1 s or failed", "", without, *(_late(fault, window) for window in windows)]
    yield [f"  {_effect(fault)} for", "", _led(control), _led(fault), "", ""]


def _cure(fault: Figures) -> str:
    of = fault["latency"][Kind.ACKS_ALL.value]
    words = {Window.BEFORE: "before the fault", Window.DURING: "until it was held", Window.AFTER: "since"}
    return ", ".join(f"{spoken(of[window.value]['p50_ms'])} {text}" for window, text in words.items() if window in of)


def _busy(report: Report) -> float | None:
    """The p99 of acks=1 before the first fault, in ms, where that is late by itself."""
    for fault in report["faults"][:1]:
        p99: float | None = fault["latency"][Kind.ACKS_1.value][Window.BEFORE.value]["p99_ms"]
        if p99 is not None and p99 > 1000 * SLOW_SECONDS:
            return p99
    return None


def _effect(fault: Figures) -> str:
    return "unreachable" if fault["fault"] == FaultKind.REACHABILITY.value else "slow"


def _led(fault: Figures | None) -> str:
    seconds = (fault or {}).get("led_by_the_broken_broker")
    return _seconds(seconds["max_seconds"] if seconds else None)


def _late(fault: Figures, window: Window) -> str:
    found = [fault["latency"][kind.value].get(window.value) for kind in (Kind.ACKS_1, Kind.ACKS_ALL)]
    known = [latency for latency in found if latency]
    if not known:
        return "-"
    share = sum(latency["late"] for latency in known) / max(1, sum(latency["count"] for latency in known))
    return f"{share:.0%}"


def _p99(latency: Figures, window: Window) -> str:
    found = latency.get(window.value)
    return spoken(found["p99_ms"]) if found else "-"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"
