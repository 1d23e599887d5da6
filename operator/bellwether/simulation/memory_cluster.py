"""Simulated Kafka control plane: how partitions change when brokers, people and requests act on them.

Tests and simulations drive it by the verbs of ``MemoryCluster``; ``memory_kafka`` implements the ports on it. It keeps
the weaknesses of the real one: names instead of ids, no compare-and-set, elections only to the first of the order,
leaders that the controller moves back. It decides like Kafka 4's ``ReplicationControlManager`` and
``PartitionChangeBuilder``, including eligible leader replicas (KIP-966); it never elects uncleanly.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bellwether.core.doctor.risks import MIN_ISR, UNCLEAN
from bellwether.core.model.cluster import Broker, Cluster, Partition, TopicPartition

TOPIC_DEFAULTS = {MIN_ISR: "1", UNCLEAN: "false"}
BROKER_DEFAULTS = TOPIC_DEFAULTS | {
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "300",
    "leader.imbalance.per.broker.percentage": "10",
    "replica.lag.time.max.ms": "30000",
}
"""Kafka's defaults of the settings that are read here."""


@dataclass(slots=True)
class MemoryBroker:
    """One simulated broker process.

    ``alive`` is the process, ``fenced`` the controller's opinion of it, ``frozen`` a process that answers nothing but
    whose session has not run out yet.
    """

    id: int
    rack: str | None = None
    alive: bool = True
    fenced: bool = False
    frozen: bool = False

    @property
    def active(self) -> bool:
        """Whether the controller would let this broker lead."""
        return self.alive and not self.fenced


class MemoryCluster:
    """Brokers and partitions that behave as a KRaft controller would have them.

    ``brokers`` is a number (ids 1..n) or a mapping of ids to racks; ``version`` is that of Kafka. Nothing happens by
    itself: followers catch up, reassignments finish and the controller balances only on request, so that every
    interleaving can be tested.
    """

    def __init__(
        self,
        brokers: int | dict[int, str | None] = 3,
        *,
        cluster_id: str = "memory-cluster",
        version: tuple[int, int] = (4, 4),
    ) -> None:
        racks = dict.fromkeys(range(1, brokers + 1)) if isinstance(brokers, int) else brokers
        self.cluster_id = cluster_id
        self.version = version
        self.elr = version >= (4, 1)  # as new clusters have it
        self.brokers: dict[int, MemoryBroker] = {b: MemoryBroker(b, rack) for b, rack in racks.items()}
        self.unregistered: set[int] = set()
        self.without_listener: set[int] = set()
        self.quorum = True
        self.mutations = 0
        self._partitions: dict[TopicPartition, Partition] = {}
        self.settings: dict[str, dict[str, str]] = {}
        """Settings of each topic, with ``min.insync.replicas``; those of brokers are in ``own_settings``."""
        self.own_settings: dict[int, dict[str, str]] = {broker: {} for broker in racks}
        self._log_dirs: dict[int, dict[str, frozenset[TopicPartition]]] = {}
        self._topics_made = 0

    # What there is.

    def partition(self, topic: str, index: int = 0) -> Partition:
        """One partition now. Raises KeyError when there is none."""
        return self._partitions[TopicPartition(topic, index)]

    def find(self, name: TopicPartition) -> Partition | None:
        """One partition now, or ``None``."""
        return self._partitions.get(name)

    def partitions(self, topics: Collection[str] | None = None) -> tuple[Partition, ...]:
        """All partitions, or those of some topics, by topic and index."""
        chosen = (n for n in self._partitions if topics is None or n.topic in topics)
        return tuple(self._partitions[name] for name in sorted(chosen))

    def answers(self, broker: int) -> bool:
        """Whether a connection to this broker is answered."""
        known = self.brokers.get(broker)
        return known is not None and known.alive and not known.frozen

    def snapshot(self) -> Cluster:
        """What metadata shows: a dead broker is gone from it, a fenced one is marked."""
        partitions = self.partitions()
        return Cluster(
            cluster_id=self.cluster_id,
            brokers={
                b.id: Broker(b.id, b.rack, host=f"broker-{b.id}.test", port=9092, fenced=b.fenced)
                for b in self.brokers.values()
                if b.alive
            },
            partitions=partitions,
            elr_enabled=self.elr,
            removed=frozenset({r for p in partitions for r in p.replicas}.difference(self.brokers))
            if self.unregistered
            else frozenset(),
        )

    def log_dirs(self, broker: int) -> dict[str, frozenset[TopicPartition]]:
        """The broker's partitions by log directory; all in ``/data`` unless they were laid out."""
        held = frozenset(p.name for p in self.partitions() if broker in p.replicas)
        laid = self._log_dirs.get(broker, {})
        first = next(iter(laid), "/data")
        found = {path: names & held for path, names in laid.items()}
        return {**found, first: found.get(first, frozenset()) | held.difference(*found.values())}

    def lay_out(self, broker: int, directories: Mapping[str, Collection[TopicPartition]]) -> None:
        """Give a broker these log directories with these partitions; the first has all others, too."""
        self._log_dirs[broker] = {path: frozenset(names) for path, names in directories.items()}

    # Settings.

    def topic_settings(self, topic: str) -> dict[str, str]:
        """What is in force for a topic."""
        return TOPIC_DEFAULTS | self.settings[topic]

    def broker_settings(self, broker: int) -> dict[str, str]:
        """What is in force on a broker."""
        return BROKER_DEFAULTS | self.own_settings.get(broker, {})

    # Topics.

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        rf: int = 3,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        internal: bool = False,
        min_isr: int = 1,
    ) -> str:
        """Make a topic and return its id; placed round-robin over the active brokers unless ``assignment`` is given.

        Raises ValueError for a name in use or a replication factor that the active brokers cannot carry.
        """
        if any(p.topic == name for p in self._partitions):
            raise ValueError(f"topic {name!r} exists already: delete it first, or use recreate_topic")
        orders = assignment if assignment is not None else place(self._interleaved(), partitions, rf)
        self._topics_made += 1
        seed = f"{self.cluster_id}/{self._topics_made}".encode()
        topic_id = base64.urlsafe_b64encode(hashlib.blake2b(seed, digest_size=16).digest()).decode().rstrip("=")
        self.settings[name] = {MIN_ISR: str(min_isr)}
        for index, order in enumerate(orders):
            isr = tuple(b for b in order if self._active(b))
            self._partitions[TopicPartition(name, index)] = Partition(
                topic=name,
                topic_id=topic_id,
                index=index,
                replicas=tuple(order),
                isr=isr,
                leader=isr[0] if isr else None,
                leader_epoch=0,
                internal=internal,
            )
        self.mutations += 1
        return topic_id

    def delete_topic(self, name: str) -> None:
        """Forget a topic. Raises KeyError when there is none."""
        gone = [p for p in self._partitions if p.topic == name]
        if not gone:
            raise KeyError(name)
        for key in gone:
            del self._partitions[key]
        del self.settings[name]
        self.mutations += 1

    def recreate_topic(self, name: str, *, assignment: Sequence[Sequence[int]] | None = None) -> str:
        """Delete a topic and make one of the same name and shape, under another id; returns that id."""
        old, least = self.partitions([name]), int(self.settings[name][MIN_ISR])
        self.delete_topic(name)
        return self.create_topic(
            name,
            len(old),
            len(old[0].replicas),
            assignment=assignment,
            internal=old[0].internal,
            min_isr=least,
        )

    # Brokers.

    def kill(self, broker: int) -> None:
        """The process dies: it leaves metadata and every ISR, and its leaders move or are lost."""
        self.brokers[broker].alive = False
        self.brokers[broker].frozen = False
        self._leave_isrs(broker)

    def unregister(self, broker: int) -> None:
        """An administrator removes a dead broker's registration; replica lists go on naming it."""
        self.kill(broker)
        del self.brokers[broker]
        self.unregistered.add(broker)

    def fence(self, broker: int) -> None:
        """The broker's session has expired: the controller fences it."""
        self.brokers[broker].fenced = True
        self._leave_isrs(broker)

    def revive(self, broker: int, *, catch_up: bool = True) -> None:
        """The broker is back and unfenced; leaderless partitions that it may lead get it, and it follows the others."""
        state = self.brokers[broker]
        state.alive, state.fenced, state.frozen = True, False, False
        for p in self.partitions():
            if broker in p.replicas and p.leader is None:
                self._update(p, election=_online)
        if catch_up:
            self.catch_up(broker)

    def catch_up(self, broker: int) -> None:
        """A follower has fetched everything: it joins each ISR that it can join."""
        for p in self.partitions():
            if broker in p.replicas and broker not in p.isr and p.leader is not None and self._active(broker):
                self.join_isr(p.name, broker)

    def freeze(self, broker: int) -> None:
        """SIGSTOP, shorter than the session: requests through the broker time out, the controller notices nothing."""
        self.brokers[broker].frozen = True

    def thaw(self, broker: int) -> None:
        """SIGCONT."""
        self.brokers[broker].frozen = False

    # Followers.

    def shrink_isr(self, name: TopicPartition, broker: int) -> None:
        """The leader drops a lagging follower from the ISR. Raises ValueError for the leader itself."""
        p = self._partitions[name]
        if broker == p.leader:
            raise ValueError(f"broker {broker} leads {name}: a leader stays in its ISR until killed or fenced")
        if broker in p.isr:
            self._update(p, isr=_without(p.isr, broker))

    def join_isr(self, name: TopicPartition, broker: int) -> None:
        """The leader takes a follower into the ISR. Raises ValueError where no leader could."""
        p = self._partitions[name]
        if p.leader is None or broker not in p.replicas or not self._active(broker):
            raise ValueError(f"broker {broker} cannot join the ISR of {name}: {p}")
        if broker not in p.isr:
            self._update(p, isr=(*p.isr, broker))

    # Other people's tools, and the controller itself.

    def foreign_reorder(self, name: TopicPartition, order: Sequence[int]) -> None:
        """Another tool gives a partition another order of its replicas."""
        p = self._partitions[name]
        if sorted(order) != sorted(p.replicas):
            raise ValueError(f"{tuple(order)} is no order of {p.replicas}: use foreign_reassign for another set")
        self.assign(p, tuple(order))

    def foreign_reassign(self, name: TopicPartition, target: Sequence[int]) -> None:
        """Another tool moves data; what must be fetched stays in flight until ``finish_reassignments``."""
        self.assign(self._partitions[name], tuple(target))

    def raise_rf(self, topic: str, *, finish: bool = True) -> None:
        """Another tool adds the lowest free active broker to each partition of a topic."""
        for p in self.partitions([topic]):
            free = [b for b in sorted(self.brokers) if b not in p.replicas and self._active(b)]
            if not free:
                raise ValueError(f"no active broker is free for another replica of {p.name}")
            self.assign(p, (*p.replicas, free[0]))
            if finish:
                self._finish(self._partitions[p.name])

    def finish_reassignments(self) -> None:
        """Every added replica whose broker is active has fetched all: reassignments complete where they can."""
        for p in self.partitions():
            if p.reassigning:
                self._finish(p)

    def auto_balance(self) -> int:
        """The controller's periodic balancing: each leader that is not first moves back; returns how many did."""
        moved = 0
        for p in self.partitions():
            first = p.replicas[0]
            if p.leader != first and first in p.isr and self._active(first):
                self._update(p, election=_preferred)
                moved += 1
        return moved

    # What the controller does with a request; called by the ports' views, too.

    def assign(self, p: Partition, target: tuple[int, ...]) -> None:
        """Reassign to ``target``: the same set in another order completes at once (KIP-455).

        What was in flight is overridden. As in Kafka, an empty list of adding or removing replicas leaves the one in
        flight as it was, so that the overridden target is both added and removed: since Kafka 4.3 until it is
        cancelled.
        """
        adding = tuple(b for b in target if b not in p.replicas)
        removing = tuple(b for b in p.replicas if b not in target)
        self._update(p, replicas=target + removing, adding=adding or p.adding, removing=removing or p.removing)

    def revert(self, p: Partition) -> None:
        """Cancel a reassignment in flight: the replicas of before it, less what was being added."""
        self._update(
            p, replicas=_without(p.replicas, *p.adding), isr=_without(p.isr, *p.adding), adding=(), removing=()
        )

    def elect_preferred(self, p: Partition) -> bool:
        """A preferred election; whether anything changed."""
        return self._update(p, election=_preferred)

    # Inside.

    def _active(self, broker: int) -> bool:
        return broker in self.brokers and self.brokers[broker].active

    def _interleaved(self) -> list[int]:
        """Active brokers, alternating between racks, as Kafka's rack-aware placement walks them."""
        by_rack: dict[str, list[int]] = {}
        for broker in sorted(self.brokers.values(), key=lambda b: b.id):
            if broker.active:
                by_rack.setdefault(broker.rack or "", []).append(broker.id)
        return [ids[i] for i in range(len(self.brokers)) for ids in by_rack.values() if i < len(ids)]

    def _leave_isrs(self, broker: int) -> None:
        for p in self.partitions():
            if broker in p.isr or broker == p.leader:
                self._update(p, isr=_without(p.isr, broker))

    def _finish(self, p: Partition) -> None:
        fetched = tuple(b for b in p.adding if b not in p.isr and self._active(b)) if p.leader is not None else ()
        self._update(p, isr=p.isr + fetched)

    def _update(
        self,
        p: Partition,
        *,
        replicas: tuple[int, ...] | None = None,
        isr: tuple[int, ...] | None = None,
        adding: tuple[int, ...] | None = None,
        removing: tuple[int, ...] | None = None,
        election: Callable[[Partition, Callable[[int], bool]], int | None] | None = None,
    ) -> bool:
        """Apply one change as ``PartitionChangeBuilder.build`` does; whether the partition changed."""
        new = replace(
            p,
            replicas=p.replicas if replicas is None else replicas,
            isr=p.isr if isr is None else isr,
            adding=p.adding if adding is None else adding,
            removing=p.removing if removing is None else removing,
        )
        remaining, kept = _without(new.isr, *new.removing), _without(new.replicas, *new.removing)
        all_in_sync = self.version < (4, 3) or len(new.adding) < len(new.removing)
        if new.reassigning and remaining and set(kept if all_in_sync else new.adding) <= set(remaining):
            new = replace(new, replicas=kept, isr=remaining, adding=(), removing=())
        new = self._with_elr(p, new)
        electable = _electable(new, self._active)
        leader = (election or _online)(new, electable)
        # A leader from outside the ISR is one of the ELR: it starts a new ISR.
        if leader is not None and leader not in new.isr:
            new = replace(new, isr=(leader,), elr=_without(new.elr, leader))
        # The last leader is remembered while no replica may lead.
        none_left = self.elr and leader is None and not new.isr
        new = replace(
            new, last_known_elr=((p.leader,) if p.leader is not None else p.last_known_elr) if none_left else ()
        )
        lost_replica = bool(set(p.replicas) - set(new.replicas))
        new = replace(new, leader=leader, leader_epoch=p.leader_epoch + int(leader != p.leader or lost_replica))
        if new == p:
            return False
        self._partitions[p.name] = new
        self.mutations += 1
        return True

    def _with_elr(self, old: Partition, new: Partition) -> Partition:
        """Replicas that may lead once the ISR is empty: those that left it below min.insync.replicas (KIP-966)."""
        if not self.elr:
            # Before KIP-966 the last member stays in the ISR though it is dead.
            return replace(new, isr=new.isr or tuple(b for b in old.isr if b in new.replicas)[-1:])
        if len(new.isr) >= min(int(self.settings[new.topic][MIN_ISR]), len(new.replicas)):
            return replace(new, elr=())
        candidates = dict.fromkeys(old.elr + old.isr)
        return replace(new, elr=tuple(b for b in candidates if b in new.replicas and b not in new.isr))


def place(brokers: Sequence[int], partitions: int, rf: int, start: int = 0) -> list[tuple[int, ...]]:
    """Kafka's round-robin placement: first replicas one after another, followers shifted by one more each time around.

    Raises ValueError where the brokers cannot carry the replication factor.
    """
    count = len(brokers)
    if not 1 <= rf <= count:
        raise ValueError(f"replication factor {rf} needs {rf} active brokers, there are {count}")
    orders = []
    for index in range(partitions):
        first, shift = (start + index) % count, start + index // count
        followers = [(first + 1 + (shift + j) % (count - 1)) % count for j in range(rf - 1)]
        orders.append(tuple(brokers[i] for i in (first, *followers)))
    return orders


def _without(ids: Iterable[int], *gone: int) -> tuple[int, ...]:
    return tuple(i for i in ids if i not in gone)


def _electable(p: Partition, active: Callable[[int], bool]) -> Callable[[int], bool]:
    """Who may lead cleanly: an active replica of the ISR, or of the ELR."""
    return lambda broker: broker in p.replicas and (broker in p.isr or broker in p.elr) and active(broker)


def _online(p: Partition, electable: Callable[[int], bool]) -> int | None:
    """Keep the leader if it may lead, else take the first in the order that may."""
    if p.leader is not None and electable(p.leader):
        return p.leader
    return next((b for b in p.replicas if electable(b)), None)


def _preferred(p: Partition, electable: Callable[[int], bool]) -> int | None:
    """Take the first in the order if it may lead, else as ``_online``."""
    return p.replicas[0] if electable(p.replicas[0]) else _online(p, electable)
