"""The report for people. In: the report. Out: tables on the console. Called by ``__main__`` at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from demo.faults import Window
from demo.report import Report
from demo.samples import Kind


def show(console: Console, report: Report, broken: Sequence[str]) -> None:
    """Print all figures, then what was broken."""
    console.print(times(report))
    for fault in report["faults"]:
        console.print(latencies(fault))
        if fault["isr_held_back_by"]:
            console.print(f"acks=all is held back by {fault['isr_held_back_by']}.", highlight=False)
            console.print("Moving leaders does not cure that: the high watermark waits for every ISR member.")
    console.print(promises(report))
    for sentence in broken:
        console.print(f"BROKEN  {sentence}", style="bold red", highlight=False, markup=False)
    if not broken:
        console.print("Every invariant held.", style="bold green")


def times(report: Report) -> Table:
    """How long each fault took to leave, and each mending to bring back."""
    table = Table(
        title=f"Leadership, {report['partitions']} partitions on {report['brokers']} brokers", title_justify="left"
    )
    table.add_column("fault")
    for name in ("fault to 0 leaders", "until it knows", "mended to in place", "moved", "unavailable s, median", "max"):
        table.add_column(name, justify="right")
    for fault in report["faults"]:
        led = (fault["unavailable"] or {}).get("led_by_the_sick_broker", {})
        table.add_row(
            f"{fault['fault']}, broker {fault['broker']}",
            _with(fault["seconds_to_zero_leaders"], " s"),
            _with(fault["seconds_until_it_knows"], " s"),
            _with(fault["seconds_to_in_place"], " s"),
            f"{fault['partitions_moved']}/{fault['partitions_led']}",
            _with(led.get("median_seconds")),
            _with(led.get("max_seconds")),
        )
    for kind, figures in (report["repeated"] or {}).items():
        for word in ("median", "worst"):
            zero, back = figures["seconds_to_zero_leaders"], figures["seconds_to_in_place"]
            table.add_row(f"{word} of {figures['runs']}: {kind}", _with(zero[word], " s"), "", _with(back[word], " s"))
    return table


def latencies(fault: dict[str, Any]) -> Table:
    """p50 and p99 in milliseconds, by kind and window; failures are counted beside."""
    table = Table(title=f"{fault['fault']}, broker {fault['broker']}: p50 / p99 in ms (failed)", title_justify="left")
    table.add_column("")
    for window in Window:
        table.add_column(window.value, justify="right")
    for kind in Kind:
        cells = []
        for window in Window:
            latency = fault["latency"][kind.value].get(window.value)
            failed = f" ({latency['failed']})" if latency and latency["failed"] else ""
            cells.append(f"{_with(latency['p50_ms'])} / {_with(latency['p99_ms'])}{failed}" if latency else "-")
        table.add_row(kind.value, *cells)
    return table


def promises(report: Report) -> Table:
    """What must be zero, or all."""
    table = Table(title="Invariants", title_justify="left")
    table.add_column("what")
    table.add_column("seen", justify="right")
    table.add_column("must be", justify="right")
    table.add_row("replica sets changed", str(report["replica_sets_changed"]), "0")
    table.add_row("partitions without a leader", str(report["offline_partitions"]), "0")
    table.add_row("replica orders as at the start", str(report["orders_restored"]), str(report["orders_total"]))
    for kind, loss in (report["acknowledged_lost"] or {}).items():
        must = "0" if kind == Kind.ACKS_ALL.value else "not promised by Kafka"
        table.add_row(f"lost of {loss['acknowledged']} acknowledged with {kind}", str(loss["lost"]), must)
        for when, count in loss["lost_by_window"].items():
            table.add_row(f"    of these, due in {when}", str(count), "")
    return table


def _with(value: float | None, unit: str = "") -> str:
    if value is None:
        return "-"
    return f"{value:.1f}{unit}" if abs(value) < 1000 else f"{value:.0f}{unit}"
