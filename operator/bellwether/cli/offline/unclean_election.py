"""Unclean leader election by hand: bound of the loss, confirmation, one request, result.

In: an examination of the partition, and ``ports.kafka.UncleanElections``. Called by ``bellwether doctor
--unclean-election``, which is the only way to it. Refused while anybody may lead without loss (law 2).
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


_UNTOLD = "REQUEST_TIMED_OUT"
"""Kafka's word for an election that it has begun and has not seen the end of."""


class Refused(Terminal):
    """Nothing was done, and why."""


class Unled(Terminal):
    """An election was asked for, and nobody was seen to lead afterwards."""


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
    """Show what would be lost and, where it is accepted, elect; how things stand afterwards.

    ``ask`` puts a question to the person and returns the answer. Raises Refused where nothing was done, Unled where
    nobody is seen to lead afterwards, and before the request what the ports raise.
    """
    found = examine().of(name)
    loss = refusable(found)
    for line in bounds(found, loss):
        say(line)
    if not accepted:
        raise Refused("nothing was done: --accept-loss says that you accept this loss")
    if ask(f"Type {name} to elect broker {loss.candidate} and to lose those records") != str(name):
        raise Refused("nothing was done: the partition was not named")
    again = examine().of(name)
    if refusable(again).candidate != loss.candidate or again.partition.leader_epoch != found.partition.leader_epoch:
        raise Refused(f"nothing was done: {name} has changed meanwhile; look again")
    return _awaited(name, examine, clock, _held(name, elections))


def _held(name: TopicPartition, elections: UncleanElections) -> str:
    """What the request came to, in words. Raises Refused where Kafka says that nothing was done."""
    try:
        outcome = elections.elect(name)
    except Transient as error:
        return str(error)  # it may have been carried out, and only the partition can tell
    if outcome.error not in ("NONE", _UNTOLD):
        raise Refused(f"nothing was done: Kafka answered {outcome.error} ({outcome.message})")
    return "Kafka took the request" if outcome.error == "NONE" else f"Kafka answered {outcome.error}"


def _awaited(name: TopicPartition, examine: Callable[[], Examination], clock: Clock, held: str) -> Examination:
    """How things stand once somebody leads. Raises Unled where nobody is seen to, in some time."""
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
            raise Unled(
                f"an unclean election of {name} was asked for: {held}; {WAIT_SECONDS:.0f} s later {seen}: look again "
                "before anything else"
            )
        clock.sleep(_PAUSE_SECONDS)


def refusable(found: Diagnosis) -> DataLoss:
    """The loss of an unclean election. Raises Refused where none is needed, or none is possible."""
    p, name = found.partition, found.partition.name
    if found.risk is Risk.ALL_REPLICAS_LOST:
        raise Refused(f"no replica of {name} lives, so nobody can be elected: start one of {list(p.replicas)}")
    if found.risk is Risk.LEADER_LOST:
        raise Refused(f"{list(found.awaited)} may lead {name} without loss: Kafka elects by itself")
    if found.loss is None:
        raise Refused(f"{name} is led by broker {p.leader}: nobody needs electing")
    if p.leader is not None:
        raise Refused(
            f"the controller still takes broker {p.leader} for {name}'s leader: it gives it up when its session ends "
            "(broker.session.timeout.ms, 9 s by default), so look again then"
        )
    return found.loss


def bounds(found: Diagnosis, loss: DataLoss) -> list[str]:
    """What a person must know before the loss is accepted."""
    p = found.partition
    awaited = ", ".join(str(b) for b in found.awaited) or "nobody"
    lines = [
        f"{p.name}: unclean election of broker {loss.candidate}, the first in the order {list(p.replicas)} that lives",
        f"  without loss could lead: {awaited} (does not live; waiting for it loses nothing)",
        f"  {loss}",
    ]
    if found.further:
        broker, end = found.further
        lines.append(
            f"  broker {broker}'s log reaches further, to offset {end}: put it first in the order to lose less"
        )
    return lines
