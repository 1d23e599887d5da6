"""The table: every fault, what must come of it, and why. Stated beforehand; ``docs/internals/faults.md`` is its prose.

In: nothing. Out: ``SCENARIOS``, in the order in which they run: stage by stage, restarts last. Called by ``__main__``.
"""

from __future__ import annotations

from dataclasses import dataclass

from faults import breaking as by
from faults.breaking import Break
from faults.expectations import Demotion, Expected
from faults.rolling import crashed, rolling
from faults.stage import VANTAGES, Layout, Stage
from realparts.processes import ManagedProcess

THREE = Layout("three")
READS = Layout("reads", old_segments=True)
CANARY = Layout("canary", detection={"canary": {"enabled": True}}, canary=True)
SIX = Layout("six", brokers=6, racks=("a", "b", "c"))
NINE = Layout("nine", brokers=9, racks=("a", "b", "c"))
SECURE = Layout("secure", secure=True)

ALL = (1, 2, 3)
UNREACHABLE = ("Sick/ExternallyUnreachable",)
SLOW = ("Sick/StorageSlow",)
DRIPS = (*((2.0, milliseconds) for milliseconds in range(1, 91)), (0.0, 100))
"""From 1 ms to 100 ms in three minutes."""
SLOW_FROM_THE_START = ((60.0, 40), (0.0, 100))
"""Slower than any good disk from the start, so a prober has learned nothing else, and then too slow."""
FEW_CYCLES = 0.05
SLOW_LIMIT = 90.0
SLOW_WATCHED = 60.0
"""Harm adds up: what is not found within a minute is within the allowance."""
LITTLE = "Suspect/HarmBelowCost"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One fault. ``watched`` are the seconds that are looked on after what must come has come, or is there anyway."""

    name: str
    what: str
    expected: Expected
    fault: Break
    layout: Layout = THREE
    watched: float = 5.0
    limit: float = 60.0
    """Seconds from the fault until what must come has come."""


def sick(broker: int, *verdicts: str) -> Expected:
    """One broker must be found sick and be demoted, and no other."""
    return Expected((broker,), verdicts, Demotion.MUST)


def slow(broker: int, demotion: Demotion = Demotion.MAY) -> Expected:
    """One broker must be found sick by its writes; whether it is demoted depends on how it follows."""
    return Expected((broker,), SLOW, demotion)


def nobody(*verdicts: str, brokers: tuple[int, ...] = ALL, quiet: bool = False) -> Expected:
    """No one may be demoted."""
    return Expected(brokers, verdicts, quiet=quiet)


def one_of_each(stage: Stage) -> list[ManagedProcess]:
    """One vantage's prober and one disk's."""
    return [stage.probers[f"reachability-{VANTAGES[0]}"], stage.storage_prober(1)]


def all_probers(stage: Stage) -> list[ManagedProcess]:
    """Every prober."""
    return list(stage.probers.values())


def dead_and_cut(name: str, brokers: str, layout: Layout) -> Scenario:
    """One broker is dead and another one is cut off: the second must not keep its leaders."""
    what = f"2 of {brokers} is dead, and external connections of 1 are refused"
    expected = Expected((1,), UNREACHABLE, Demotion.MUST, dead=(2,))
    return Scenario(name, what, expected, by.dead_and_cut, layout=layout, watched=15.0)


def freezing(broker: int, seconds: int, period: int) -> Scenario:
    """A broker is frozen again and again, each time for less than Kafka needs to fence it."""
    what = f"{broker} is frozen for {seconds} s in every {period}"
    fault = by.freezing(broker, seconds, period)
    return Scenario(f"frozen-{seconds}s-of-{period}s", what, sick(broker, "Sick/Freezing"), fault, watched=30.0)


SCENARIOS = (
    Scenario(
        "listener-cut", "external connections of 1 are closed and refused", sick(1, *UNREACHABLE), by.way(by.cut, 1)
    ),
    Scenario(
        "listener-blackholed",
        "packets to 2's external address are dropped",
        sick(2, *UNREACHABLE),
        by.way(by.swallow, 2),
    ),
    Scenario(
        "listener-silent",
        "3's external address accepts and never answers",
        sick(3, *UNREACHABLE),
        by.way(by.silence, 3),
    ),
    Scenario(
        "reset-after-handshake",
        "1's connections are reset at the first byte",
        sick(1, *UNREACHABLE),
        by.way(by.reset, 1),
    ),
    Scenario(
        "wrong-broker", "the load balancer sends 2's address to 3", sick(2, *UNREACHABLE), by.way(by.mislead(to=3), 2)
    ),
    Scenario(
        "one-vantage-broken",
        "packets from one of three vantages are dropped, to every broker",
        nobody("Healthy"),
        by.own_path(VANTAGES[0], dropped=True),
        watched=20.0,
    ),
    Scenario(
        "one-vantage-misses-one",
        "one of three vantages is refused by 1 alone",
        Expected((1,), ("Suspect/VantagesDisagree",)),
        by.own_path(VANTAGES[1], brokers=(1,), dropped=False),
        watched=10.0,
    ),
    Scenario(
        "two-vantages-miss-one",
        "two of three vantages are refused by 2 alone",
        sick(2, *UNREACHABLE),
        by.own_path(*VANTAGES[:2], brokers=(2,), dropped=False),
    ),
    Scenario(
        "all-vantages-broken",
        "every vantage is refused by every broker, clients are not",
        Expected(ALL, ("Unknown",), passing=(*UNREACHABLE, LITTLE)),  # until the dwell's end the first is alone
        by.own_path(*VANTAGES, dropped=False),
        watched=15.0,
    ),
    Scenario(
        "disk-20ms",
        "1's disk takes 20 ms: within the objective",
        nobody("Healthy"),
        by.disk(20, 1),
        watched=SLOW_WATCHED,
    ),
    Scenario("disk-80ms", "2's disk takes 80 ms", slow(2), by.disk(80, 2), limit=SLOW_LIMIT),
    Scenario("disk-500ms", "3's disk takes 500 ms", slow(3, Demotion.MUST), by.disk(500, 3), limit=SLOW_LIMIT),
    Scenario(
        "disk-stalled",
        "1's disk does not answer any more",
        Expected((1,), (*SLOW, "Sick/NotFencedInTime"), Demotion.MAY),
        by.stalled(1),
        watched=15.0,
        limit=SLOW_LIMIT,
    ),
    Scenario(
        "disk-slow-everywhere",
        "every disk takes 80 ms",
        Expected(ALL, ("Suspect/SystemicCause",), passing=(*SLOW, LITTLE)),  # until the dwell's end the first is alone
        by.disk(80, *ALL),
        watched=20.0,
        limit=SLOW_LIMIT,
    ),
    Scenario(
        "disk-bursty",
        "3's disk takes 100 ms for 1 s in every 10",
        nobody("Healthy", LITTLE),
        by.bursts(100, 1.0, 10.0, 3),
        watched=SLOW_WATCHED,
    ),
    Scenario(
        "small-losses",
        "for five minutes one vantage loses 5 % of its packets, and 1's and 3's disks take 100 ms for 1 s in every 10",
        nobody("Healthy", LITTLE, "Suspect/VantagesDisagree"),
        by.both(by.losing_packets(VANTAGES[0], 0.05), by.bursts(100, 1.0, 10.0, 1, 3)),
        watched=300.0,
    ),
    Scenario(
        "listener-resets-some",
        "70 % of 1's external connections are reset",
        sick(1, *UNREACHABLE),
        by.way(by.reset_some(0.7), 1),
        limit=SLOW_LIMIT,
    ),
    Scenario(
        "listener-flapping",
        "2's external listener is cut for 2 s in every 4",
        sick(2, *UNREACHABLE),
        by.flapping(2.0, 2.0, 2),
        limit=SLOW_LIMIT,
    ),
    Scenario(
        "disk-mostly-slow",
        "3's disk takes 100 ms for 7 s in every 10",
        slow(3),
        by.bursts(100, 7.0, 10.0, 3),
        limit=SLOW_LIMIT,
    ),
    Scenario(
        "disk-dripping",
        "1's disk gets slower, from 1 ms to 100 ms in three minutes",
        slow(1),
        by.drip(DRIPS, 1),
        limit=300.0,
    ),
    Scenario(
        "disk-slow-from-the-start",
        "2's disk takes 40 ms for a minute, then 100 ms",
        slow(2),
        by.drip(SLOW_FROM_THE_START, 2),
        limit=180.0,
    ),
    Scenario("frozen-3s", "1 is frozen for 3 s", nobody("Healthy", LITTLE), by.frozen(1, 3.0), watched=15.0),
    freezing(1, 5, 9),
    freezing(3, 6, 11),
    Scenario(
        "frozen-for-good",
        "2 is frozen, and fenced by Kafka",
        Expected((2,), ("Down",), leaderless=True),
        by.frozen(2),
        watched=20.0,
    ),
    Scenario(
        "prober-starved",
        "one vantage's prober and one disk's get 5 % of a core",
        nobody("Healthy"),
        by.few_cycles(FEW_CYCLES, one_of_each),
        watched=SLOW_WATCHED,
    ),
    Scenario(
        "prober-starved-disk-20ms",
        "1's disk takes 20 ms, and its prober gets 5 % of a core",
        nobody("Healthy", "Unknown/NoEvidence"),
        by.both(by.disk(20, 1), by.few_cycles(FEW_CYCLES, one_of_each)),
        watched=SLOW_WATCHED,
    ),
    Scenario(
        "probers-starved",
        "every prober gets 5 % of a core",
        nobody("Healthy", "Unknown", "Suspect"),
        by.few_cycles(FEW_CYCLES, all_probers),
        watched=SLOW_WATCHED,
    ),
    Scenario(
        "clocks-off",
        "two vantages and two disks' probers are an hour off, one ahead and one behind each",
        nobody("Healthy"),
        by.clocks_off,
        watched=SLOW_WATCHED,
    ),
    Scenario(
        "clocks-off-cut",
        "external connections of 2 are refused while clocks are off, and accepted again at the end",
        sick(2, *UNREACHABLE),
        by.while_clocks_are_off(by.way(by.cut, 2)),
    ),
    Scenario(
        "clocks-off-disk",
        "1's disk takes 80 ms while clocks are off, and no longer at the end",
        slow(1),
        by.while_clocks_are_off(by.disk(80, 1)),
        limit=SLOW_LIMIT,
    ),
    Scenario(
        "heartbeats-lost", "no prober measures or renews its Lease", nobody("Unknown"), by.all_halted, watched=20.0
    ),
    Scenario(
        "heartbeats-lost-demoted",
        "3 is demoted, then the vantages' probers stop reporting",
        Expected((3,), ("Unknown",), Demotion.STAYS, passing=UNREACHABLE),
        by.halted_while_demoted,
        watched=20.0,
    ),
    dead_and_cut("dead-and-cut-3", "three", THREE),
    Scenario(
        "broker-crashed",
        "2 is killed and started at once; the load balancer finds it after 20 s",
        nobody("Healthy"),
        crashed,
        watched=10.0,
    ),
    Scenario(
        "rolling-restart-3",
        "three brokers restart in turn; the load balancer finds each after 20 s",
        nobody("Healthy", quiet=True),
        rolling,
        watched=15.0,
    ),
    Scenario(
        "reads-80ms",
        "each read from 3's disk takes 80 ms, writes are fast",
        sick(3, "Sick/ReadsSlow"),
        by.disk(80, 3, mode="read"),
        layout=READS,
        limit=SLOW_LIMIT,
    ),
    Scenario(
        "answers-300ms",
        "every answer of 2 to clients outside comes 300 ms late",
        sick(2, "Sick/CanaryFailing"),
        by.way(by.delay(300), 2),
        layout=CANARY,
        limit=SLOW_LIMIT,
    ),
    Scenario(
        "answers-300ms-everywhere",
        "every answer of every broker to clients outside comes 300 ms late",
        Expected(ALL, ("Healthy", "Suspect"), passing=("Sick/CanaryFailing",)),  # until each has failed, one is alone
        by.way(by.delay(300), *ALL),
        layout=CANARY,
        watched=20.0,
    ),
    Scenario(
        "tls-expired",
        "the certificate that 1 shows outside has expired",
        sick(1, *UNREACHABLE),
        by.expired(1),
        layout=SECURE,
    ),
    Scenario(
        "zone-gone",
        "the load balancer of one of three racks refuses: 1 and 4 of six",
        Expected((1, 4), UNREACHABLE, Demotion.MUST),
        by.way(by.cut, 1, 4),
        layout=SIX,
    ),
    dead_and_cut("dead-and-cut", "six", SIX),
    Scenario(
        "rolling-restart-6",
        "six brokers in three racks restart in turn; the load balancer finds each after 20 s",
        nobody("Healthy", brokers=(1, 2, 3, 4, 5, 6), quiet=True),
        rolling,
        layout=SIX,
        watched=15.0,
    ),
    dead_and_cut("dead-and-cut-9", "nine", NINE),
)
