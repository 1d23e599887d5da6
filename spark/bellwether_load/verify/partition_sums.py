"""Sum loads per broker in one pass through the partitions and the moves of a plan, and collect errors.

Partitions come in the order of (topic, topic id, partition), as the moves do, so both are read once and neither is
held. Only each partition's load, and who may lead it, is kept: the bounds need the base of all brokers first.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bellwether_load.verify.check_report import Faults
from bellwether_load.verify.hour_sums import HourSums
from bellwether_load.verify.load_table import LoadTable, Unusable
from bellwether_load.verify.move_stream import Key, MoveRow, MoveStream
from bellwether_load.verify.plan_digests import Fingerprint, canonical, joined
from bellwether_load.verify.plan_documents import LARGEST, Problem

PartitionRow = tuple[str, str, int, tuple[int, ...], tuple[int, ...], int, str]
"""Topic, topic id, partition, replicas in their order, ISR, leader (-1: none), why it is held."""

PROBLEM = "partitions of the problem"
LOADS = "loads"
FACTS = "moves tell the facts"
ORDERS = "orders"
ELIGIBLE = "leaders are eligible"
STAY = "what must stay stays"
FORCED = "what must move moves"
ORDERED = "leaders come first"

STEP = 50_000
"""Partitions between two progress reports."""

_NO_BROKER = -1


@dataclass
class Sums:
    """What the pass adds up; loads in hundredths of a byte/s, those of brokers by id.

    ``loads`` holds the load of each partition that an open broker leads or will lead; those that may lead it are in
    ``eligible``, up to its place in ``ends``. ``homes`` has its leader, or -1 if that may not lead it, ``numbers`` its
    index in its topic; the partitions of ``topics[i]`` begin at ``firsts[i]``. ``unmeasured``: partitions without
    measured consumption by topic.
    """

    base: dict[int, int]
    led_before: dict[int, int]
    led_after: dict[int, int]
    partitions: int = 0
    without_load: int = 0
    without_consumption: int = 0
    held: int = 0
    forced: int = 0
    moved: int = 0
    reordered: int = 0
    moved_load: int = 0
    loads: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    eligible: array[int] = field(default_factory=lambda: array("i"))
    homes: array[int] = field(default_factory=lambda: array("i"))
    numbers: array[int] = field(default_factory=lambda: array("i"))
    topics: list[str] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    unmeasured: dict[str, int] = field(default_factory=dict)
    problem_digest: str = ""
    input_digest: str = ""
    plan_digest: str = ""

    def name(self, at: int) -> str:
        """Topic and index of the partition at a place in ``loads``."""
        return f"{self.topics[bisect_right(self.firsts, at) - 1]}-{self.numbers[at]}"


def sweep(
    problem: Problem,
    partitions: Iterable[PartitionRow],
    loads: LoadTable,
    moves: MoveStream,
    faults: Faults,
    progress: Callable[[int], None] | None = None,
    hourly: HourSums | None = None,
    *,
    of_input: bool = False,
) -> Sums:
    """Read all partitions, and all moves, and add up, by hour too; what is wrong goes to ``faults``.

    ``of_input``: whether the digest of the problem without loads is wanted.
    """
    ids = [b.id for b in problem.brokers]
    sums = Sums(dict.fromkeys(ids, 0), dict.fromkeys(ids, 0), dict.fromkeys(ids, 0))
    form = _Form(faults, frozenset(ids))
    account = _Account(problem, sums, faults)
    hashed, stated = (Fingerprint(canonical(problem.document)) for _ in range(2))
    lines: list[str] = []
    inputs: list[str] = []
    before: Key = ("", "", -1)
    for row in partitions:
        topic, topic_id, number, replicas, isr, leader, held = row
        key = (topic, topic_id, number)
        carried = None
        sound = form.sound(row, key, before)
        if sound:
            before = key
            try:
                carried = loads.of(topic_id, number)
            except Unusable as error:
                faults.add(LOADS, f"{topic}-{number}: {error}")
            after, may = account.add(row, carried, moves.take(key))
            if hourly is not None:
                hourly.add(sums.partitions, key, replicas, (leader, after), may, known=carried is not None)
        p, c = ("-", "-") if carried is None else (carried[0], carried[1] or 0)
        hosts = joined(replicas)
        members = hosts if isr == replicas else joined(isr)
        line = f"{topic}\t{topic_id}\t{number}\t{hosts}\t{members}\t{leader}\t{held}"
        lines.append(f"{line}\t{p}\t{c}")
        if of_input:
            inputs.append(f"{line}\t-\t-")
        sums.partitions += 1
        if not sums.partitions % STEP:
            hashed.add(lines)
            stated.add(inputs)
            lines.clear()
            inputs.clear()
            if progress is not None:
                progress(sums.partitions)
    hashed.add(lines)
    stated.add(inputs)
    sums.problem_digest, sums.input_digest = hashed.finish(), stated.finish()
    sums.plan_digest = moves.finish()
    if progress is not None:
        progress(sums.partitions)
    return sums


class _Form:
    """Whether a partition makes sense by itself and after the one before."""

    def __init__(self, faults: Faults, brokers: frozenset[int]) -> None:
        self._faults = faults
        self._brokers = brokers
        self._topics: set[str] = set()
        self._ids: set[str] = set()
        self._words: set[str] = {""}

    def sound(self, row: PartitionRow, key: Key, before: Key) -> bool:
        topic, topic_id, number, replicas, isr, leader, held = row
        if not key > before:
            again = "occurs twice" if key == before else f"comes after {before[0]}-{before[2]}, out of order"
            return self._refuse(row, again)
        if topic_id != before[1] or topic != before[0]:
            self._topic(row)
        if held not in self._words:
            self._word(row)
        members = set(replicas)
        if number < 0:
            return self._refuse(row, "has a negative index")
        if not members or len(members) != len(replicas):
            return self._refuse(row, f"has the replicas {list(replicas)}: at least one is required, each once")
        if not members <= self._brokers:
            missing = ", ".join(map(str, sorted(members - self._brokers)))
            return self._refuse(row, f"has replicas on broker {missing}, which problem.json does not list")
        if not members.issuperset(isr):
            return self._refuse(row, f"has the ISR {list(isr)}, which is not among its replicas {list(replicas)}")
        if leader != _NO_BROKER and leader not in members:
            return self._refuse(row, f"is led by {leader}, which is not among its replicas {list(replicas)}")
        return True

    def _topic(self, row: PartitionRow) -> None:
        topic, topic_id = row[:2]
        if not topic or not topic_id or not (topic + topic_id).isprintable():
            self._refuse(row, "has an empty name or topic id, or one that cannot be printed")
        if topic in self._topics:
            self._refuse(row, "has another topic id than the topic's partitions before it")
        if topic_id in self._ids:
            self._refuse(row, "has a topic id that belongs to another topic")
        self._topics.add(topic)
        self._ids.add(topic_id)

    def _word(self, row: PartitionRow) -> None:
        if not row[6].isprintable():
            self._refuse(row, "is held for a reason that cannot be printed")
        self._words.add(row[6])

    def _refuse(self, row: PartitionRow, why: str) -> bool:
        self._faults.add(PROBLEM, f"{row[0]}-{row[2]} {why}")
        return False


class _Account:
    """Adds partition after partition to the sums, and holds each move against what it should be."""

    def __init__(self, problem: Problem, sums: Sums, faults: Faults) -> None:
        self._sums = sums
        self._faults = faults
        self._problem = problem
        self._open = frozenset(b.id for b in problem.brokers if b.open)
        last = len(problem.racks)
        places = {rack: place for place, rack in reversed(list(enumerate(problem.racks)))}
        self._rank = {b.id: last if b.rack is None else places.get(b.rack, last) for b in problem.brokers}

    def add(
        self, row: PartitionRow, carried: tuple[int, int | None] | None, move: MoveRow | None
    ) -> tuple[int, list[int]]:
        """Returns the leader after the plan, and the open brokers of which one must lead the partition."""
        sums, replicas, leader = self._sums, row[3], row[5]
        follow, load = self._costs(row, carried)
        may = self._candidates(row) if carried is not None and not row[6] else []
        sums.without_load += carried is None
        if carried is not None and carried[1] is None:
            sums.without_consumption += 1
            sums.unmeasured[row[0]] = sums.unmeasured.get(row[0], 0) + 1
        sums.held += bool(row[6])
        after = self._moved(row, carried, move, may, load) if move is not None else leader
        for broker in replicas:
            sums.base[broker] += follow
        if not may:
            if leader == _NO_BROKER:
                return after, []
            may = [leader] if leader in self._open else []
        elif leader not in may:
            sums.forced += 1
            if move is None:
                self._faults.add(FORCED, f"{row[0]}-{row[2]} stays with {leader}, which may not lead it")
        elif move is None and leader != replicas[0]:
            self._faults.add(
                ORDERED, f"{row[0]}-{row[2]} is led by {leader}, not first in {list(replicas)}, permanently"
            )
        if leader != _NO_BROKER:
            sums.led_before[leader] += load
        if after != _NO_BROKER:
            sums.led_after[after] += load
        if may:
            if not sums.topics or sums.topics[-1] != row[0]:
                sums.topics.append(row[0])
                sums.firsts.append(len(sums.loads))
            sums.numbers.append(row[2])
            sums.loads.append(load)
            sums.eligible.extend(may)
            sums.homes.append(leader if leader in may else _NO_BROKER)
            sums.ends.append(len(sums.eligible))
        return after, may

    def _costs(self, row: PartitionRow, carried: tuple[int, int | None] | None) -> tuple[int, int]:
        if carried is None:
            return 0, 0
        asked, (p, c) = self._problem, carried
        follow = asked.follow * p
        load = asked.produce * p + asked.replication * p * (len(row[3]) - 1) + asked.consume * (c or 0) - follow
        if load < 0:
            what = f"would cost {load} hundredths of a byte/s more to lead than to follow"
            self._faults.add(LOADS, f"{row[0]}-{row[2]} {what}: the weights must not make it negative")
            return follow, 0
        if load > LARGEST:
            self._faults.add(LOADS, f"{row[0]}-{row[2]} would cost {load} hundredths of a byte/s: more than can be")
            return follow, 0
        return follow, load

    def _candidates(self, row: PartitionRow) -> list[int]:
        isr, free = row[4], self._open
        found = [b for b in row[3] if b in free and b in isr]
        if self._problem.racks and found:
            rank = self._rank
            best = min(rank[b] for b in found)
            return [b for b in found if rank[b] == best]
        return found

    def _moved(
        self, row: PartitionRow, carried: tuple[int, int | None] | None, move: MoveRow, may: list[int], load: int
    ) -> int:
        """Who leads after a move; the leader of before where the move may not be."""
        name, replicas, leader, to = f"{row[0]}-{row[2]}", row[3], row[5], move[6]
        add = self._faults.add
        for what, said, found in (
            ("replicas", move[3], replicas),
            ("from_leader", move[5], leader),
            ("load", move[7], load),
        ):
            if said != found:
                add(FACTS, f"{name}: {what} is {_shown(said)}, in the problem {_shown(found)}")
        if move[4] != (to, *(b for b in replicas if b != to)):
            add(
                ORDERS,
                f"{name}: order is {list(move[4])} where {to} first and then the others of {list(replicas)} is due",
            )
        elif to == leader == replicas[0]:
            add(ORDERS, f"{name} moves nothing: {to} leads it and is first already")
        if row[6] or carried is None or not may:
            why = f"is held ({row[6]})" if row[6] else "has no load" if carried is None else "has no candidate"
            add(STAY, f"{name} {why} and must stay as it is")
            return leader
        if to not in may:
            add(ELIGIBLE, f"{name} goes to {to}, {self._why_not(to, row)}; {', '.join(map(str, may))} may lead it")
            return leader
        if to == leader:
            self._sums.reordered += 1
        else:
            self._sums.moved += 1
            self._sums.moved_load += load
        return to

    def _why_not(self, broker: int, row: PartitionRow) -> str:
        if broker not in row[3]:
            return "which is no replica of it"
        if broker not in self._open:
            return "which is closed"
        return "which is not in its ISR" if broker not in row[4] else "which is not in the preferred rack"


def _shown(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
