"""The run in plain sentences: what was broken, what Bellwether saw and did, what clients felt. Values in, text out.

Each sentence gives the figures of the moment in which it is said; ``scenario`` says it, ``screen`` prints it.
"""

from __future__ import annotations

from collections.abc import Sequence

from demo.faults import Fault, FaultKind, Window
from demo.latencies import Latency, spoken, summarise
from demo.samples import Kind, Sample

BROKEN = "broken"
REPAIRED = "repaired"
CHANGED = "changed"
SAW = "Bellwether saw"
DID = "Bellwether did"
CLIENTS = "clients felt"


def calm(samples: Sequence[Sample], span: tuple[float, float]) -> str:
    """What clients feel while nothing is broken."""
    found = (f"{kind.value} {spoken(summarise(samples, kind, *span).p99_ms)}" for kind in Kind)
    return f"p99 {', '.join(found)}."


def broke(fault: Fault, delay_milliseconds: int) -> str:
    """What was broken, and why Kafka leaves it at that."""
    leaders = f"{len(fault.led):,} leaders"
    if fault.kind is FaultKind.REACHABILITY:
        return (
            f"The load balancer refuses every connection to broker {fault.broker}. Its heartbeats arrive and its "
            f"replicas follow, so Kafka leaves its {leaders} where they are."
        )
    return (
        f"Each write on broker {fault.broker}'s disk takes {delay_milliseconds} ms longer. The broker still "
        f"answers, so Kafka leaves its {leaders} where they are."
    )


def repaired(fault: Fault) -> str:
    """What works again."""
    if fault.kind is FaultKind.REACHABILITY:
        return f"The load balancer accepts connections to broker {fault.broker} again."
    return f"Broker {fault.broker}'s disk is as fast as before."


def saw(fault: Fault) -> str:
    """The verdict with its reason, and its message unless ``bellwether explain`` prints it later."""
    message = f': "{fault.message}"' if fault.message and fault.kind is FaultKind.REACHABILITY else "."
    return (
        f"Broker {fault.broker} is Sick, {fault.reason}, {_seconds(fault.seconds_to_verdict)} after the fault{message}"
    )


def only_observed(fault: Fault) -> str:
    """That nothing is done, and why."""
    return (
        f"Nothing, as spec.mode is Observe for this step: broker {fault.broker} keeps its {len(fault.led):,} leaders, "
        "as without Bellwether."
    )


def moved(fault: Fault) -> str:
    """How many leaders left, and how soon."""
    return (
        f"{fault.moved:,} of {len(fault.led):,} leaders have left broker {fault.broker}, "
        f"{_seconds(fault.seconds_to_zero_leaders)} after the fault. No data was moved."
    )


def quarantine_on(broker: int) -> str:
    """What is allowed now, and why."""
    return (
        f"spec.quarantine.mode is Enabled now: Bellwether may shut broker {broker} down and hold it, as demotion does "
        "not cure a slow disk: acks=all waits for every replica in sync, and the cluster can spare one broker."
    )


def held(fault: Fault) -> str:
    """When the broker was held and in no ISR."""
    return (
        f"Broker {fault.broker} is shut down and held, {_seconds(fault.seconds_to_held)} after the fault, and in no ISR"
        ": every partition keeps min.insync.replicas=2 without it, and no client waits for it."
    )


def released(fault: Fault) -> str:
    """When the process was let go, and when it was started again."""
    return (
        f"Broker {fault.broker} was released {_seconds(fault.seconds_to_released)} after the repair; its process ended "
        f"and was started again within {_seconds(fault.seconds_to_started)}, and fetches what it missed."
    )


def restored(fault: Fault, stabilization: int) -> str:
    """How soon everything was back, and what that time consists of."""
    steps = f"{stabilization} s of stabilization, then waves of 10, 50 and 100 % of the leaders"
    if fault.quarantined:
        steps = "a start, and an election of its leaders; no replica order had changed"
    back = _seconds(fault.seconds_to_in_place)
    return f"Every replica order and every leader is back, {back} after the repair: good probes, {steps}."


def felt_without(fault: Fault, samples: Sequence[Sample]) -> str:
    """What the control cost."""
    during = _in(fault, samples, Kind.ACKS_1, Window.DURING)
    before = _in(fault, samples, Kind.ACKS_1, Window.BEFORE)
    return (
        f"No client reached the leader of {len(fault.led):,} partitions for {_seconds(fault.seconds_broken)}, until "
        f"the demo repaired it. Writes (acks=1): p99 {spoken(during.p99_ms)}, {spoken(before.p99_ms)} before; "
        f"{during.late:,} of {during.count:,} failed or took over 1 s."
    )


def felt_with(fault: Fault, samples: Sequence[Sample], control: Fault | None, now: float) -> str:
    """What clients felt until the leaders had left, and since."""
    during = _in(fault, samples, Kind.ACKS_1, Window.DURING)
    after = _in(fault, samples, Kind.ACKS_1, Window.AFTER, now)
    text = (
        f"Writes (acks=1): p99 {spoken(during.p99_ms)} until the leaders had left, {spoken(after.p99_ms)} since; "
        f"{during.late + after.late:,} of {during.count + after.count:,} failed or took over 1 s."
    )
    if control is not None:
        without = _in(control, samples, Kind.ACKS_1, Window.DURING)
        text += f" Without Bellwether: p99 {spoken(without.p99_ms)}, {without.late:,} of {without.count:,}."
    if fault.kind is FaultKind.STORAGE:
        reads = _in(fault, samples, Kind.FETCH, Window.AFTER, now)
        text += f" Reads: p99 {spoken(reads.p99_ms)} since. {_strict(fault, samples, now)}"
    return text


def _strict(fault: Fault, samples: Sequence[Sample], now: float) -> str:
    windows = (Window.BEFORE, Window.DURING, Window.AFTER)
    before, until, since = (_in(fault, samples, Kind.ACKS_ALL, window, now) for window in windows)
    return (
        f"acks=all: p50 {spoken(before.p50_ms)} before the fault, {spoken(until.p50_ms)} until broker {fault.broker} "
        f"was held, {spoken(since.p50_ms)} since; {since.late:,} of {since.count:,} failed or took over 1 s since."
    )


def _in(fault: Fault, samples: Sequence[Sample], kind: Kind, window: Window, now: float | None = None) -> Latency:
    return summarise(samples, kind, *fault.windows(now).get(window, (0.0, 0.0)))


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"
