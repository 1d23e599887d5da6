"""Sum loads per broker in one pass through the partitions and the moves of a plan, and collect errors.

Partitions come in the order of (topic, topic id, partition), as loads and moves do, so all are read once and none is
held. Only each partition's load, and who may lead it, is kept: the bounds need the base of all brokers first.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from bellwether.core.settings.objective import WHOLE
from bellwether_load.plan.problem import NO_BROKER, ProblemHeader
from bellwether_load.plan.rebalance_plan import Fingerprint
from bellwether_load.verify.checks import Faults
from bellwether_load.verify.hour_bound import HourBound
from bellwether_load.verify.load_rows import BITS, LOADS, Load, LoadRows, unpacked
from bellwether_load.verify.loss_sums import LossSums
from bellwether_load.verify.row_streams import Key, MoveRow, MoveStream, joined

PartitionRow = tuple[str, str, int, tuple[int, ...], tuple[int, ...], int, str]
"""Topic, topic id, partition, replicas in their order, ISR, leader (-1: none), why it is held."""

PROBLEM = "partitions of the problem"
FACTS = "moves tell the facts"
ORDERS = "orders"
ELIGIBLE = "leaders are eligible"
STAY = "what must stay stays"
FORCED = "what must move moves"
ORDERED = "leaders come first"

_REPLICAS = 1_000
"""Of a partition, at most: with more of them it could exceed 2**63 in a column."""
COLUMN = (1 << BITS) - 1
"""The bits of the first column: the statistic."""
_FULL = 7 << 61
"""Bits of a column that only sums of 2**61 or more have."""


@dataclass
class Sums:
    """What the pass adds up; loads in hundredths of a byte/s, those of brokers by id, in columns.

    ``loads`` holds the load of each partition that an open broker leads or will lead; those that may lead it are in
    ``eligible``, up to its place in ``ends``. ``homes`` has its leader, or -1 if that may not lead it, ``numbers`` its
    index in its topic; the partitions of ``topics[i]`` begin at ``firsts[i]``. ``unmeasured``: partitions without
    measured consumption by topic. ``losses``: sums of their own, for what the plan claims of losses.
    """

    base: dict[int, int]
    led_before: dict[int, int]
    led_after: dict[int, int]
    columns: int = 1
    partitions: int = 0
    without_load: int = 0
    without_consumption: int = 0
    without_requests: int = 0
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
    losses: LossSums | None = None

    def name(self, at: int) -> str:
        """Topic and index of the partition at a place in ``loads``."""
        return f"{self.topics[bisect_right(self.firsts, at) - 1]}-{self.numbers[at]}"

    def carried(self, led: dict[int, int]) -> dict[int, list[int]]:
        """What each broker carries in each column, with what it leads."""
        return {b: unpacked(self.base[b] + load, self.columns).tolist() for b, load in led.items()}


def sweep(
    problem: ProblemHeader,
    document: str,
    partitions: Iterable[PartitionRow],
    loads: LoadRows,
    moves: MoveStream,
    faults: Faults,
    bound: HourBound | None = None,
    losses: LossSums | None = None,
    *,
    of_input: bool = False,
) -> Sums:
    """Read all partitions, and all moves, and add up, by hour too; what is wrong goes to ``faults``.

    ``document``: the problem's, in one line. ``of_input``: whether the digest of the problem without loads is wanted.
    """
    ids = [b.id for b in problem.brokers]
    sums = Sums(dict.fromkeys(ids, 0), dict.fromkeys(ids, 0), dict.fromkeys(ids, 0), losses=losses)
    sums.columns = loads.columns
    form = _Form(faults, frozenset(ids))
    account = _Account(problem, sums, faults, bound)
    hashed, stated = Fingerprint(document), Fingerprint(document)
    for row in partitions:
        topic, topic_id, number, replicas, isr, leader, held = row
        carried = None
        if form.sound(row):
            carried = loads.of(row[:3])
            account.add(row, carried, moves.take(row[:3]))
        hosts = joined(replicas)
        members = hosts if isr == replicas else joined(isr)
        line = f"{topic}\t{topic_id}\t{number}\t{hosts}\t{members}\t{leader}\t{held}"
        hashed.add(
            f"{line}\t-\t-" if carried is None else f"{line}\t{carried.produce & COLUMN}\t{carried.consume & COLUMN}"
        )
        if of_input:
            stated.add(f"{line}\t-\t-")
        sums.partitions += 1
    sums.problem_digest, sums.input_digest, sums.plan_digest = hashed.finish(), stated.finish(), moves.finish()
    return sums


class _Form:
    """Whether a partition makes sense by itself and after the one before."""

    def __init__(self, faults: Faults, brokers: frozenset[int]) -> None:
        self._faults = faults
        self._brokers = brokers
        self._before: Key = ("", "", -1)
        self._topics: set[str] = set()
        self._ids: set[str] = set()
        self._held: set[str] = {""}

    def sound(self, row: PartitionRow) -> bool:
        topic, topic_id, number, replicas, isr, leader, held = row
        key, before = row[:3], self._before
        if not key > before:
            again = "occurs twice" if key == before else f"comes after {before[0]}-{before[2]}, out of order"
            return self._refuse(row, again)
        if topic_id != before[1] or topic != before[0]:
            self._topic(row)
        if held not in self._held:
            self._held.add(held)
            if not held.isprintable():
                self._refuse(row, "is held for a reason that cannot be printed")
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
        if leader != NO_BROKER and leader not in members:
            return self._refuse(row, f"is led by {leader}, which is not among its replicas {list(replicas)}")
        self._before = key
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

    def _refuse(self, row: PartitionRow, why: str) -> bool:
        self._faults.add(PROBLEM, f"{row[0]}-{row[2]} {why}")
        return False


class _Account:
    """Adds partition after partition to the sums, and holds each move against what it should be."""

    def __init__(self, problem: ProblemHeader, sums: Sums, faults: Faults, bound: HourBound | None) -> None:
        self._sums, self._faults, self._bound = sums, faults, bound
        self._asked = asked = problem.objective
        self._open = frozenset(b.id for b in problem.brokers if b.open)
        racks = asked.preferred_racks
        self._rank = {b.id: racks.index(b.rack) if b.rack in racks else len(racks) for b in problem.brokers}
        self._full = sum(_FULL << BITS * column for column in range(sums.columns))
        self._total = 0

    def add(self, row: PartitionRow, carried: Load | None, move: MoveRow | None) -> None:
        """Add one partition, in the next row of the problem, with its load and its move, if it has them."""
        sums, replicas, leader = self._sums, row[3], row[5]
        extra, follow = self._costs(row, carried)
        load = extra & COLUMN
        may = self._candidates(row) if carried is not None and not row[6] else []
        sums.without_load += carried is None
        if carried is not None and not carried.consume_known:
            sums.without_consumption += 1
            sums.unmeasured[row[0]] = sums.unmeasured.get(row[0], 0) + 1
        sums.without_requests += carried is not None and not carried.requests_known and self._asked.request_bytes > 0
        sums.held += bool(row[6])
        after = self._moved(row, carried, move, may, load) if move is not None else leader
        for broker in replicas:
            sums.base[broker] += follow
        if sums.losses is not None:
            order = replicas if move is None or set(move[4]) != set(replicas) else move[4]
            sums.losses.add(replicas, row[4], (leader, after), order, load, may)
        if not may:
            if leader == NO_BROKER:
                return
            may = [leader] if leader in self._open else []
        elif leader not in may:
            sums.forced += 1
            if move is None:
                self._faults.add(FORCED, f"{row[0]}-{row[2]} stays with {leader}, which may not lead it")
        elif move is None and leader != replicas[0]:
            said = f"{row[0]}-{row[2]} is led by {leader}, not first in {list(replicas)}, permanently"
            self._faults.add(ORDERED, said)
        if leader != NO_BROKER:
            sums.led_before[leader] += extra
        if after != NO_BROKER:
            sums.led_after[after] += extra
        if not may:
            return
        if self._bound is not None:
            self._bound.add(sums.partitions, row[:3], may, leader, extra >> BITS)
        if not sums.topics or sums.topics[-1] != row[0]:
            sums.topics.append(row[0])
            sums.firsts.append(len(sums.loads))
        sums.numbers.append(row[2])
        sums.loads.append(load)
        sums.eligible.extend(may)
        sums.homes.append(leader if leader in may else NO_BROKER)
        sums.ends.append(len(sums.eligible))

    def _costs(self, row: PartitionRow, carried: Load | None) -> tuple[int, int]:
        """What leading costs more than following, and what following costs, in each column."""
        if carried is None:
            return 0, 0
        asked, name = self._asked, f"{row[0]}-{row[2]}"
        if len(row[3]) > _REPLICAS:
            self._faults.add(
                LOADS, f"{name} has {len(row[3]):,} replicas: loads of more than {_REPLICAS:,} are too large"
            )
            return 0, 0
        extra = WHOLE * (carried.produce * (len(row[3]) - 1) + carried.consume * asked.consumption)
        extra += asked.request_bytes * carried.requests
        follow = WHOLE * carried.produce
        total = self._total + extra + follow * len(row[3])
        if total & self._full:
            self._faults.add(LOADS, f"{name}: loads add up to more than 2**61 hundredths of a byte/s")
            return 0, 0
        self._total = total
        return extra, follow

    def _candidates(self, row: PartitionRow) -> list[int]:
        isr, free = row[4], self._open
        found = [b for b in row[3] if b in free and b in isr]
        if self._asked.preferred_racks and found:
            rank = self._rank
            best = min(rank[b] for b in found)
            return [b for b in found if rank[b] == best]
        return found

    def _moved(self, row: PartitionRow, carried: Load | None, move: MoveRow, may: list[int], load: int) -> int:
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
        if move[4][:1] != (to,) or sorted(move[4]) != sorted(replicas):
            add(ORDERS, f"{name}: order is {list(move[4])}, expected {to} and then the others of {list(replicas)}")
        elif to == leader and move[4] == replicas:
            add(ORDERS, f"{name} moves nothing: {to} leads it, and the order is the same")
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
