"""Judges a run. In: the report. Out: a list of broken promises, empty when all is well. Called by ``__main__``.

Latencies and times are not judged here: they depend on the machine, and the report shows them. What may never happen,
on any machine, is judged. A lost record with acks=1 is no broken promise, as Kafka makes none (``losses`` says why).
"""

from __future__ import annotations

from demo.report import Report
from demo.samples import Kind


def broken(report: Report) -> list[str]:
    """What did not hold, a sentence each."""
    found = [f"the run ended early: {problem}" for problem in report["problems"]]
    if not report["faults"]:
        found.append("no fault was tried")
    found.extend(
        f"{control['partitions_moved']} leaders moved while Bellwether only observed (must be 0)"
        for control in report["faults"]
        if not control["acting"] and control["partitions_moved"]
    )
    for fault in (f for f in report["faults"] if f["acting"]):
        name = f"{fault['fault']} on broker {fault['broker']}"
        if not fault["partitions_led"]:
            found.append(f"{name}: the broker led nothing when the fault began, so nothing was shown")
        if fault["seconds_to_zero_leaders"] is None:
            found.append(f"{name}: the broker never came to lead nothing")
        if fault["quarantined"] and fault["seconds_to_out_of_isr"] is None:
            found.append(f"{name}: the broker was not held, or stayed in an ISR")
        if fault["quarantined"] and fault["seconds_to_released"] is None:
            found.append(f"{name}: the held broker was never released")
        if fault["seconds_to_in_place"] is None:
            found.append(f"{name}: leaders and replica orders never came back")
    if report["replica_sets_changed"]:
        found.append(f"the replica sets of {report['replica_sets_changed']} partitions changed (must be 0)")
    if report["offline_partitions"]:
        found.append(f"{report['offline_partitions']} partitions were without a leader at some time (must be 0)")
    if report["orders_restored"] != report["orders_total"]:
        found.append(
            f"only {report['orders_restored']} of {report['orders_total']} replica orders are those of the start"
        )
    found.extend(_losses(report))
    return found


def _losses(report: Report) -> list[str]:
    if report["acknowledged_lost"] is None:
        return ["the topics were not read back, so nothing is known about lost records"]
    promised = report["acknowledged_lost"][Kind.ACKS_ALL.value]
    found = []
    if promised["lost"]:
        found.append(f"{promised['lost']} records acknowledged with acks=all are lost (must be 0)")
    if not promised["acknowledged"]:
        found.append("no record was acknowledged with acks=all, so nothing was shown")
    return found
