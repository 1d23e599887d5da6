"""A large cluster behind the real adapter, step by step: at rest, a broker demoted, promoted; then with racks.

In: how many brokers and partitions. Out: for each step the CPU time of one plan, of the reconciles that change
something and of those that follow and find nothing new, and the memory of the process until then. The brokers are a
process of their own (``detectioncosts.manybrokers``), signals and the undo record are in memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import cast

from bellwether.adapters.kafka.connection.response_decoding import LARGEST_LIMIT
from bellwether.core.demotion.decisions import decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import judge
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.planning.plan import build_plan
from bellwether.core.settings.placement import Placement, Preference, TopicRule
from bellwether.core.settings.policy import Election, Policy
from bellwether.core.signals import OverrideState, Reading, SignalType
from bellwether.simulation.memory_world import ManualClock
from detectioncosts.manybrokers import address, cluster_id
from realparts.ports import HeldPorts
from testkit.kafka.kafka_site import KafkaSite, PassingTime
from testkit.simulation.operators import POLICY, Operator
from waiting import until

VANTAGES = ("vantage-a", "vantage-b", "vantage-c")
SICK = 4
MOST_TURNS = 10
QUIET_TURNS = 3


@dataclass(frozen=True, slots=True)
class Step:
    """One step's figures. Times are CPU seconds of this process, which reads, decodes, judges, plans and reports.

    ``plan_seconds``: one plan. ``changing_seconds``: the longest reconcile that moved something, or found it moved.
    ``quiet_seconds``: the shortest of those that found nothing new. ``mutations``: orders and leaders changed.
    ``peak_megabytes``: the most memory that the process has had so far.
    """

    name: str
    moves: int
    plan_seconds: float
    changing_seconds: float
    quiet_seconds: float
    turns: int
    mutations: int
    held: int
    peak_megabytes: float


def wanted() -> Policy:
    """Leaders in one rack, then another; of every tenth topic in the third."""
    rules = (TopicRule("topic-*0", Preference(("rack-0", "rack-1"))),)
    placement = Placement(Preference(("rack-2", "rack-1")), rules)
    return replace(POLICY, placement=placement, election=Election(batch_size=5000))


@contextmanager
def many_brokers(brokers: int, partitions: int) -> Iterator[KafkaSite]:
    """The cluster in a process of its own, as a site for an operator; every broker has passing signals."""
    ports = HeldPorts()
    internal, external, traffic = ports.take(), ports.take(), ports.take()
    sizes = ("--count", str(brokers), "--partitions", str(partitions))
    listeners = ("--internal-port", str(internal), "--external-port", str(external), "--traffic-port", str(traffic))
    process = subprocess.Popen([sys.executable, "-m", "detectioncosts.manybrokers", *sizes, *listeners])
    try:
        kafka = SimpleNamespace(bootstrap=f"{address(SICK + 1)}:{internal}", cluster_id=cluster_id())
        site = KafkaSite(kafka, clock=cast(PassingTime, ManualClock()))
        site.lease.duration_seconds = 1e6  # of a clock that only turns advance
        site.limits = replace(site.limits, metadata_bytes=LARGEST_LIMIT)
        until(lambda: _answers(site), 300, "brokers that answer", every=0.2)
        for broker in range(1, brokers + 1):
            site.signals.say(broker, Reading.PASSING, sources=VANTAGES)
            site.signals.say(broker, Reading.PASSING, type=SignalType.STORAGE_LATENCY, sources=(f"broker-{broker}",))
        yield site
    finally:
        process.kill()
        process.wait()
        ports.release()


def _answers(site: KafkaSite) -> bool:
    try:
        return bool(site.reader.partitions(["__consumer_offsets"]))
    except Exception:
        return False


def steps(site: KafkaSite, *, racks: bool = True) -> Iterator[Step]:
    """Every step in its turn; each one settles before the next begins. ``racks``: those with preferred racks, too."""
    operator = Operator(site, POLICY)
    yield _step("first", site, operator)
    yield from _demoted_and_back("", site, operator)
    if not racks:
        return
    operator.policy = wanted()
    yield _step("racks preferred", site, operator)
    yield from _demoted_and_back(", racks", site, operator)


def _demoted_and_back(what: str, site: KafkaSite, operator: Operator) -> Iterator[Step]:
    site.signals.override(SICK, OverrideState.DEMOTED)
    yield _step(f"one demoted{what}", site, operator)
    site.signals.lift(SICK)
    yield _step(f"promoted{what}", site, operator)


def _step(name: str, site: KafkaSite, operator: Operator) -> Step:
    moves, plan_seconds = _plan(site, operator)
    changing, mutations = [], 0
    for _ in range(MOST_TURNS):
        seconds, sent, settled, _held = _turn(site, operator)
        changing.append(seconds)
        mutations += sent
        if settled:
            break
    else:
        raise AssertionError(f"{name}: not settled after {MOST_TURNS} turns")
    quiet = [_turn(site, operator) for _ in range(QUIET_TURNS)]
    late = sum(sent for _, sent, _, _ in quiet)
    if late:
        raise AssertionError(f"{name}: {late} changes were asked for at rest")
    fastest = min(seconds for seconds, *_ in quiet)
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6, 1)
    return Step(name, moves, plan_seconds, max(changing), fastest, len(changing), mutations, quiet[-1][3], peak)


def _turn(site: KafkaSite, operator: Operator) -> tuple[float, int, bool, int]:
    """One reconcile: CPU seconds, mutations, whether nothing is left to move, and how many partitions are held."""
    began = time.process_time()
    said = operator.reconcile()
    seconds = time.process_time() - began
    assert said is not None, "the brokers did not answer in time"
    operator.reports.clear()
    site.clock.advance(30)
    settled = said.plan.empty and not said.plan.decisions.waits  # a broker's leaders return in waves
    return seconds, said.result.reordered + said.result.elected, settled, len(said.held)


def _plan(site: KafkaSite, operator: Operator) -> tuple[int, float]:
    """The moves of the plan that the next reconcile makes, and how long that takes; none before the first."""
    if operator.memory is None:
        return 0, 0.0
    memory, cluster = operator.memory, operator.world.clusters.read()
    overrides = tuple(operator.world.signals.overrides())
    facts = Snapshot(site.clock.now(), cluster, memory.record, operator.world.signals.signals(), overrides)
    context = Context(facts, judge(facts, operator.policy, memory.verdicts), operator.policy)
    decisions = decide(context)
    began = time.process_time()
    plan = build_plan(context, decisions)
    return len(plan.moves), time.process_time() - began
