"""Small runs of the demo, made by hand, for the unit tests of the demo."""

from __future__ import annotations

from demo.faults import Fault, FaultKind
from demo.losses import Loss
from demo.observations import Observations, Seen
from demo.report import Report, compile_report
from demo.samples import Kind, Sample
from demo.settings import Settings

NAME = ("orders", 0)


def sample(
    due: float = 0.0, seconds: float = 0.01, kind: Kind = Kind.ACKS_1, partition: int = 0, **more: object
) -> Sample:
    values = {"sequence": 0, "error": "", **more}
    return Sample(kind, "orders", partition, due=due, done=due + seconds, **values)  # type: ignore[arg-type]


def fault(kind: FaultKind = FaultKind.REACHABILITY, **more: object) -> Fault:
    made = Fault(kind, 1, (0.0, 10.0), began=10.0, judged=13.0, zero_leaders=15.0, repaired=25.0)
    made.in_place, made.ended = 45.0, 55.0
    made.reason, made.message = "ExternallyUnreachable", "2 of 2 vantages cannot reach it"
    made.led, made.moved = frozenset({NAME}), 1
    for name, value in more.items():
        setattr(made, name, value)
    return made


def control(**more: object) -> Fault:
    """The same fault while Bellwether only observed."""
    kept = {"acting": False, "zero_leaders": None, "in_place": None, "ended": None, "moved": 0}
    return fault(**{**kept, **more})  # type: ignore[arg-type]


def quarantined(**more: object) -> Fault:
    """A slow disk whose broker led nothing 5 s after the fault, and was held half a second later."""
    kept = {"held": 15.5, "out_of_isr": 16.0, "released": 30.0, "started": 31.5}
    return fault(FaultKind.STORAGE, **{**kept, **more})


def observed() -> Observations:
    seen = Observations()
    for at, leader in ((9.0, 1), (15.0, 2), (45.0, 1)):
        order = (1, 2, 3) if leader == 1 else (2, 3, 1)
        seen.add(at, {NAME: Seen(leader, order, (1, 2, 3))})
    return seen


def report(**more: object) -> Report:
    """A run in which everything held, with some figures replaced."""
    kept = {kind: Loss(10, 10, 0, ()) for kind in (Kind.ACKS_1, Kind.ACKS_ALL)}
    made = compile_report(Settings(), [fault()], [sample(due=1.0)], observed(), kept, [])
    return {**made, **more}
