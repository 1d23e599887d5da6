"""The cures of ``bench-cures``, applied by hand to a cluster without an operator, as the operator would.

In: a ``Stage`` whose fault has begun. Out: a function that undoes the cure, once the fault is over. Called by
``__main__``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.kafka import Reorder
from bellwether.quarantine.broker_process import BrokerProcess
from cures.stage import SICK

if TYPE_CHECKING:
    from cures.stage import Stage

PACE_SECONDS = 2.0
Undo = Callable[[], None]


def nothing(_: Stage) -> Undo:
    """Leave all as it is."""
    return lambda: None


def demotion(stage: Stage) -> Undo:
    """Put the broker last in every order, and elect the preferred leaders."""
    return _demoted(stage, stage.home)


def paced_demotion(stage: Stage) -> Undo:
    """The same, one leader at a time, each a pace after the one before."""
    for name in stage.led:
        _demoted(stage, [name])
        stage.rest(PACE_SECONDS)
    return lambda: _restored(stage)


def directory_demotion(stage: Stage) -> Undo:
    """Demote only what lies in the slow directory."""
    here = {folder.name for folder in stage.sick.log_dirs[0].iterdir()}
    return _demoted(stage, [name for name in stage.home if f"{name.topic}-{name.partition}" in here])


def hold(stage: Stage) -> Undo:
    """A controlled shutdown that is held, as the quarantine agent does it."""
    process = BrokerProcess(pattern=stage.sick.pattern)
    process.hold()
    stage.every_tick = process.guarded

    def undo() -> None:
        stage.every_tick = None
        process.release()
        stage.until(stage.sick.start_if_ended, "the broker that was held has ended and is started")

    return undo


def pause(stage: Stage) -> Undo:
    """Stop the process where it is: Kafka fences it once its session has run out."""
    stage.sick.pause()
    return stage.sick.resume


CURES: dict[str, Callable[[Stage], Undo]] = {
    "nothing": nothing,
    "demotion": demotion,
    "paced-demotion": paced_demotion,
    "directory-demotion": directory_demotion,
    "hold": hold,
    "pause": pause,
}


def _demoted(stage: Stage, names: Iterable[TopicPartition]) -> Undo:
    wanted = [Reorder(n, (*[b for b in stage.home[n] if b != SICK], SICK)) for n in names if SICK in stage.home[n]]
    stage.mover.reorder(wanted)
    stage.mover.elect([one.name for one in wanted if one.name in stage.led])
    return lambda: _restored(stage)


def _restored(stage: Stage) -> None:
    time.sleep(1)  # the broker that answered may know of the last order before ours
    now = stage.partitions()
    astray = [Reorder(n, order) for n, order in stage.home.items() if n in now and now[n].replicas != order]
    if astray:
        stage.mover.reorder(astray)
