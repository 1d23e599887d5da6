"""Adds up a run. In: faults, samples, observations, losses. Out: one dictionary, which is reports/demo.json.

Called by ``__main__`` once the traffic has ended; ``summary`` prints the same figures for people, ``invariants`` judges
them. Nothing is left out because it looks bad: what could not be measured is ``null``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from demo.faults import Fault, FaultKind, Window
from demo.latencies import summarise
from demo.losses import Loss
from demo.observations import Observations
from demo.outages import outage, seen_by_clients
from demo.samples import Kind, Sample
from demo.settings import Settings

Report = dict[str, Any]
SCHEMA = 4
OWN_TOPICS = ("__consumer_offsets",)
"""Kafka's own, which a consumer group brings about."""


def compile_report(
    settings: Settings,
    faults: Sequence[Fault],
    samples: Sequence[Sample],
    seen: Observations,
    lost: dict[Kind, Loss] | None,
    problems: Sequence[str],
) -> Report:
    """The whole report. ``lost`` is ``None`` when the topics were not read back; ``problems`` ended the run early."""
    return {
        "schema": SCHEMA,
        "brokers": settings.brokers,
        "partitions": len(seen.view),
        "internal_partitions": sum(topic in OWN_TOPICS for topic, _ in seen.view),
        "records_per_second": settings.rate,
        "stabilization_seconds": settings.stabilization,
        "faults": [fault_figures(fault, samples, seen) for fault in faults],
        "repeated": repeated(faults) if settings.repeat > 1 else None,
        "replica_sets_changed": len(seen.sets_changed),
        "offline_partitions": len(seen.offline),
        "orders_restored": seen.orders_restored(),
        "orders_total": len(seen.view),
        "acknowledged_lost": None
        if lost is None
        else {kind.value: loss_figures(loss, faults) for kind, loss in lost.items()},
        "problems": list(problems),
    }


def fault_figures(fault: Fault, samples: Sequence[Sample], seen: Observations) -> Report:
    """Everything about one fault."""
    windows = fault.windows()
    latency = {
        kind.value: {w.value: asdict(summarise(samples, kind, *span)) for w, span in windows.items()} for kind in Kind
    }
    figures: Report = {
        "fault": fault.kind.value,
        "broker": fault.broker,
        "acting": fault.acting,
        "verdict": fault.reason or None,
        "seconds_to_verdict": fault.seconds_to_verdict,
        "seconds_broken": fault.seconds_broken,
        "seconds_to_zero_leaders": fault.seconds_to_zero_leaders,
        "seconds_until_old_leader_notices": fault.seconds_until_old_leader_notices,
        "quarantined": fault.quarantined,
        "seconds_to_held": fault.seconds_to_held,
        "seconds_to_out_of_isr": fault.seconds_to_out_of_isr,
        "seconds_to_released": fault.seconds_to_released,
        "seconds_to_started": fault.seconds_to_started,
        "seconds_to_in_place": fault.seconds_to_in_place,
        "partitions_led": len(fault.led),
        "partitions_moved": fault.moved,
        "led_by_the_broken_broker": None,
        "late_or_failed": None,
        "latency": latency,
    }
    if fault.began is not None:
        until = fault.repaired or seen.at
        partitions = fault.led
        figures["led_by_the_broken_broker"] = asdict(
            outage(seen.seconds_led(fault.broker, fault.began, until), partitions)
        )
        figures["late_or_failed"] = {
            kind.value: asdict(outage(seen_by_clients(samples, kind, fault.began, until), partitions))
            for kind in (Kind.ACKS_1, Kind.ACKS_ALL)
        }
    return figures


def loss_figures(loss: Loss, faults: Sequence[Fault]) -> Report:
    """How many acknowledged records are gone, in which window of which fault they were due, and the first of them."""
    spans = {
        f"{fault.name}: {window}": span
        for fault in faults
        for window, span in fault.windows().items()
        if window is not Window.BEFORE  # one quiet stretch may come before several faults
    }
    when = {name: sum(1 for s in loss.lost if start <= s.due < end) for name, (start, end) in spans.items()}
    return {
        "sent": loss.sent,
        "acknowledged": loss.acknowledged,
        "failed": loss.failed,
        "lost": len(loss.lost),
        "lost_by_window": {name: count for name, count in when.items() if count},
        "first_lost": [f"{s.topic}-{s.partition}, record {s.sequence}" for s in loss.lost[:10]],
    }


def repeated(faults: Sequence[Fault]) -> Report:
    """Median and worst over the repetitions, by kind of fault."""
    result: Report = {}
    for kind in FaultKind:
        chosen = [f for f in faults if f.kind is kind and f.acting]
        result[kind.value] = {
            "runs": len(chosen),
            "seconds_to_zero_leaders": spread([f.seconds_to_zero_leaders for f in chosen]),
            "seconds_to_in_place": spread([f.seconds_to_in_place for f in chosen]),
        }
    return result


def spread(values: Sequence[float | None]) -> dict[str, float | None]:
    """Median and worst; a value that was never reached has no number, and makes the worst ``None``."""
    known = [v for v in values if v is not None]
    if not known:
        return {"median": None, "worst": None}
    return {"median": round(median(known), 2), "worst": max(known) if len(known) == len(values) else None}


def save(report: Report, path: Path) -> None:
    """Write the report as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
