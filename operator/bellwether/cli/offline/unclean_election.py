"""Manual unclean leader election: estimate of the loss, confirmation, one request, result.

In: an examination of the partition, and ``ports.kafka.UncleanElections``. Only ``bellwether doctor
--unclean-election`` calls it. Refused while any replica may lead without loss (invariant 2).
"""

from __future__ import annotations

from collections.abc import Callable

from bellwether.cli.diagnosis.cluster_examination import Examination
from bellwether.core.doctor.risks import DataLoss, Diagnosis, Risk
from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.ports.kafka import UncleanElections

WAIT_SECONDS = 15.0
_PAUSE_SECONDS = 0.25

Say = Callable[[str], None]
Ask = Callable[[str], str]
_UNFINISHED = "REQUEST_TIMED_OUT"
"""Kafka's error for an election that was started and not finished in time."""


class Refused(Terminal):
    """Nothing was changed, with the reason."""


class NoLeaderElected(Terminal):
    """An election was requested, and no leader was seen afterwards."""


def elect_uncleanly(
    name: TopicPartition,
    examine: Callable[[], Examination],
    elections: UncleanElections,
    clock: Clock,
    say: Say,
    ask: Ask,
    *,
    accepted: bool,
) -> Examination:
    """Show the expected loss and, if it is accepted, elect. Returns the examination afterwards.

    ``ask`` prompts the user and returns the answer. Raises Refused if nothing was changed, NoLeaderElected if no leader
    is seen afterwards, and before the request the errors of the ports.
    """
    found = examine().of(name)
    loss = refusable(found)
    for line in bounds(found, loss):
        say(line)
    if not accepted:
        raise Refused("nothing was changed: to accept this loss, add --accept-loss")
    if ask(f"Type {name} to elect broker {loss.candidate} and lose these records") != str(name):
        raise Refused(f"nothing was changed: the answer was not {name}")
    again = examine().of(name)
    if refusable(again).candidate != loss.candidate or again.partition.leader_epoch != found.partition.leader_epoch:
        raise Refused(f"nothing was changed: the state of {name} changed in the meantime; run the command again")
    return _awaited(name, examine, clock, _held(name, elections))


def _held(name: TopicPartition, elections: UncleanElections) -> str:
    """Result of the request as text. Raises Refused if Kafka rejected it."""
    try:
        outcome = elections.elect(name)
    except Transient as error:
        return str(error)  # it may have been executed; only the partition's metadata shows that
    if outcome.error not in ("NONE", _UNFINISHED):
        raise Refused(f"nothing was changed: Kafka returned {outcome.error}")
    return "Kafka accepted the request" if outcome.error == "NONE" else f"Kafka returned {outcome.error}"


def _awaited(name: TopicPartition, examine: Callable[[], Examination], clock: Clock, held: str) -> Examination:
    """Wait for a leader. Raises NoLeaderElected if there is none within ``WAIT_SECONDS``."""
    until, seen = clock.monotonic() + WAIT_SECONDS, "it has no leader"
    while True:
        try:
            after = examine()
            if after.of(name).partition.leader is not None:
                return after
            seen = "it has no leader"
        except (Transient, Terminal) as error:
            seen = str(error)
        if clock.monotonic() >= until:
            raise NoLeaderElected(
                f"an unclean election of {name} was requested ({held}), but after {WAIT_SECONDS:.0f} s {seen}: run "
                "bellwether doctor again before you do anything else"
            )
        clock.sleep(_PAUSE_SECONDS)


def refusable(found: Diagnosis) -> DataLoss:
    """Loss of an unclean election. Raises Refused if none is needed or possible."""
    p, name = found.partition, found.partition.name
    if found.risk is Risk.ALL_REPLICAS_LOST:
        raise Refused(
            f"no replica of {name} is alive, so no leader can be elected: start one of the brokers {list(p.replicas)}"
        )
    if found.risk is Risk.LEADER_LOST:
        raise Refused(
            f"an unclean election of {name} is not needed: brokers {list(found.awaited)} can lead without loss, and "
            "Kafka elects one by itself"
        )
    if found.loss is None:
        raise Refused(f"an unclean election of {name} is not needed: its leader is broker {p.leader}")
    if p.leader is not None:
        raise Refused(
            f"the controller still has broker {p.leader} as the leader of {name} until that broker's session expires "
            "(broker.session.timeout.ms, 9 s by default): run the command again then"
        )
    return found.loss


def bounds(found: Diagnosis, loss: DataLoss) -> list[str]:
    """What the user must know before the loss is accepted."""
    p = found.partition
    awaited = ", ".join(str(b) for b in found.awaited) or "none"
    lines = [
        f"{p.name}: unclean election of broker {loss.candidate}, the first live replica of {list(p.replicas)}",
        f"  could lead without loss: {awaited} (not alive; waiting for it loses nothing)",
        f"  {loss}",
    ]
    if found.further:
        broker, end = found.further
        lines.append(
            f"  broker {broker}'s log is longer and ends at offset {end}: put it first in the order to lose less"
        )
    return lines
