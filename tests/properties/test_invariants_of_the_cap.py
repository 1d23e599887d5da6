"""Invariant 4: how many brokers signals demote, whatever happens to the brokers and in whichever order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.demotion.cap import symptom
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.undo_record import Cause
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Demotion
from bellwether.core.signals import Harm, OverrideState, Reading, Signal, SignalType
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site

CAPS = st.integers(1, 3) | st.sampled_from(["10%", "20%", "40%"])
EVENTS = st.sampled_from(["cut", "leaky", "slow", "well", "well", "die", "return", "demote", "release"])


class Simulation:
    """A cluster without racks, and the operator that runs on it. ``demoted``: those that signals demoted."""

    def __init__(self, brokers: int, demotion: Demotion) -> None:
        self.site = site(brokers, {"orders": 2 * brokers}, rf=min(3, brokers))
        self.operator = Operator(self.site, replace(POLICY, demotion=demotion))
        self.demoted: frozenset[int] = frozenset()
        self.cut: set[int] = set()
        self.leaking: set[int] = set()
        for broker in self.site.cluster.brokers:
            self.befalls("well", broker)
        self.operator.reconciles(1)

    def befalls(self, event: str, broker: int) -> None:
        said, cluster = self.site.signals, self.site.cluster
        if event in ("cut", "leaky", "well"):
            self.cut, self.leaking = self.cut - {broker}, self.leaking - {broker}
            self.cut |= {broker} if event == "cut" else set()
            self.leaking |= {broker} if event == "leaky" else set()
        match event:
            case "cut":
                said.say(broker, Reading.FAILING)
            case "leaky":
                self.leak(broker)
            case "slow":
                self.disk(broker, Reading.FAILING)
            case "well":
                said.say(broker, Reading.PASSING)
                self.disk(broker, Reading.PASSING)
            case "die":
                cluster.kill(broker)
            case "return":
                cluster.revive(broker)
                cluster.catch_up(broker)
            case "demote":
                said.override(broker, OverrideState.DEMOTED, "disk swap")
            case "release":
                said.lift(broker)

    def leak(self, broker: int) -> None:
        """An eighth of all requests is lost, for so long that a move is worth it."""
        now = self.site.clock.now()
        for vantage in ("vantage-a", "vantage-b"):
            harm = Harm(20.0, 0.12, now - timedelta(seconds=600))
            leaks = SignalType.EXTERNAL_REACHABILITY, vantage, Reading.FAILING, now, 0.0, Reading.PASSING
            self.site.signals.put(Signal(broker, *leaks, harm=harm))

    def disk(self, broker: int, reading: Reading) -> None:
        self.site.signals.say(broker, reading, type=SignalType.STORAGE_LATENCY, sources=[f"disk-{broker}"])

    @property
    def report(self) -> Report:
        return self.operator.reports[-1]

    @property
    def live(self) -> set[int]:
        return {b for b, state in self.site.cluster.brokers.items() if state.active}

    def reconcile(self) -> tuple[frozenset[int], frozenset[int]]:
        """One turn; who has been demoted by signals since, and who is so no longer."""
        before = self.demoted
        self.operator.reconciles(1)
        demoted = self.report.plan.decisions.demoted
        self.demoted = frozenset(b for b, d in demoted.items() if d.cause is Cause.SIGNALS)
        return self.demoted - before, before - self.demoted


def lost_all(simulation: Simulation, broker: int) -> bool:
    """Whether clients reach a broker through its listener no more."""
    return broker in simulation.cut


@given(st.integers(2, 9), CAPS, st.data())
def test_invariant_4_in_any_order_of_events(brokers: int, cap: int | str, data: st.DataObject):
    demotion = Demotion(dwell_seconds=0, max_brokers=cap)
    simulation = Simulation(brokers, demotion)
    for event, broker in data.draw(st.lists(st.tuples(EVENTS, st.integers(1, brokers)), max_size=16)):
        by_hand = {b for b, d in simulation.report.plan.decisions.demoted.items() if d.cause is not Cause.SIGNALS}
        simulation.befalls(event, broker)
        if not simulation.live:
            simulation.befalls("return", broker)
        added, removed = simulation.reconcile()
        verdicts = {b.broker: b.verdict for b in simulation.report.brokers}
        live = simulation.live
        if new := added - by_hand:  # signals take over a manual demotion of a sick broker when it ends
            beyond = len(simulation.demoted & live) - demotion.cap(brokers)
            assert beyond <= (1 if any(lost_all(simulation, b) for b in new) else 0)
            assert all(verdicts[b].state is HealthState.SICK for b in new)
            assert live - simulation.report.plan.decisions.demoted.keys()
            heavy = all(lost_all(simulation, b) for b in new)
            counted = [b for b in live if not (heavy and b in simulation.leaking)]
            alike = Counter(shown for b in counted if (shown := symptom(verdicts[b])) is not None)
            assert not any(n > 1 and 2 * n >= len(live) for n in alike.values())
        assert all(verdicts[b].state is HealthState.HEALTHY for b in removed)
        for hold in simulation.report.plan.decisions.held:
            if hold.reason is Reason.CAP_REACHED and lost_all(simulation, hold.broker) and "maxBrokers" in hold.message:
                using = simulation.demoted & live
                assert len(using) > demotion.cap(brokers) or all(lost_all(simulation, b) for b in using)
        blocked = {h.broker for h in simulation.report.plan.decisions.held}
        sick = {b for b, v in verdicts.items() if v.state is HealthState.SICK}
        assert sick <= blocked | simulation.report.plan.decisions.demoted.keys()


@given(st.integers(2, 9), CAPS, st.data())
def test_invariant_4_dead_brokers_never_keep_a_sick_one_from_being_demoted(
    brokers: int, cap: int | str, data: st.DataObject
):
    simulation = Simulation(brokers, Demotion(dwell_seconds=0, max_brokers=cap))
    ids = st.integers(1, brokers)
    sick = data.draw(ids)
    dead = data.draw(st.sets(ids.filter(lambda b: b != sick), max_size=brokers - 2))
    events = [*(("die", b) for b in dead), (data.draw(st.sampled_from(["cut", "slow"])), sick)]
    for event, broker in data.draw(st.permutations(events)):
        simulation.befalls(event, broker)
        simulation.reconcile()
    assert simulation.demoted == {sick}
