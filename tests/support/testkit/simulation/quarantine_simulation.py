"""A simulated cluster with a disk, a prober and a quarantine agent next to every broker, and an operator.

In: a cluster, a policy, who votes. Out: seconds that pass, in which agents and operator do their work through the real
code, while a watcher that knows the truth, and asks neither, measures how long anything has been as it must not be.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from bellwether.core.doctor.risks import MIN_ISR
from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS
from bellwether.core.settings.policy import Demotion, Mode, Policy, Promotion, Quarantine, QuarantineMode
from bellwether.core.signals import QUARANTINE_AGENT, Reading, Signal, SignalType
from bellwether.quarantine.agent_loop import TICK_SECONDS, QuarantineAgent
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryFaultTolerance
from testkit.simulation.memory_site import MemoryOrderReader, MemoryProcess, MemorySite
from testkit.simulation.operators import Operator

SESSION_SECONDS = 9.0
LIMIT_SECONDS = 60
LOSS_SECONDS = 6.0
"""The longest that a hold may outlast a loss while operator and API work: turns without an answer, one
that does not, a read."""
LOST_SECONDS = EXPIRES_AFTER_SECONDS + 2.0
"""The longest that a hold may outlast its orders."""


def strict(spare: int = 1) -> Policy:
    """A policy that quarantines soon and not for long."""
    return Policy(
        name="main",
        mode=Mode.ENFORCE,
        demotion=Demotion(dwell_seconds=0, max_brokers=2),
        promotion=Promotion(stabilization_seconds=5, max_stabilization_seconds=0),
        quarantine=Quarantine(mode=QuarantineMode.ENABLED, limit_seconds=LIMIT_SECONDS, spare_isr_members=spare),
    )


class QuarantineSite:
    """Everything of one cluster. ``broken`` lists the invariants that were broken, in words."""

    def __init__(self, cluster: MemoryCluster, policy: Policy | None = None, voters: Collection[int] = ()) -> None:
        self.site = MemorySite(cluster)
        self.cluster = cluster
        self.policy = policy or strict()
        self.voters = frozenset(voters)
        self.margins = MemoryFaultTolerance(cluster, voters)
        self.margins.trailing |= cluster.brokers.keys()
        self.slow: set[int] = set()
        self.broken: list[str] = []
        self.holds = 0
        self.processes = {b: MemoryProcess(cluster, b) for b in cluster.brokers}
        self.agents: dict[int, QuarantineAgent] = {}
        self.operator: Operator | None = None
        self._unheard: dict[int, Signal] = {}
        self._frozen_since: dict[int, float] = {}
        self._problem_since: dict[int, float] = {}
        self._held_since: dict[int, float] = {}
        self._trouble_at = float("-inf")
        for broker in cluster.brokers:
            self.post(broker)
        self.take_over()

    # What happens to it.

    def post(self, broker: int) -> None:
        """A quarantine agent starts next to a broker."""
        if broker not in self.agents:
            heard = self._unheard.__setitem__
            self.agents[broker] = QuarantineAgent(
                broker,
                f"agent-{broker}",
                self.processes[broker],
                MemoryOrderReader(self.site.orders, broker, lambda: self._held_elsewhere(broker)),
                lambda signal: heard(signal.broker, signal),
                self.site.clock,
            )

    def kill_agent(self, broker: int) -> None:
        """A quarantine agent dies without a word; its keeper does not."""
        if self.agents.pop(broker, None) is not None:
            self.processes[broker].die()

    def take_over(self) -> None:
        """An operator starts, and goes on with the orders that it finds."""
        if self.operator is None:
            operator = Operator(self.site, self.policy)
            operator.world = replace(operator.world, margins=self.margins)
            self.operator = operator

    def kill_operator(self) -> None:
        """The operator dies."""
        self.operator = None

    def kill(self, broker: int) -> None:
        """The broker dies, and the controller notices at the end of its session: it stops answering at once."""
        self.processes[broker].release()
        self.cluster.freeze(broker)

    def mend(self, broker: int) -> None:
        """The broker runs, and its disk is fast."""
        self.slow.discard(broker)
        if not self.processes[broker].stopped:
            self.cluster.thaw(broker)
        if not self.cluster.brokers[broker].alive:
            self.cluster.revive(broker)

    # Time.

    def seconds(self, count: float) -> None:
        """Time passes; every process works."""
        for tick in range(round(count / TICK_SECONDS)):
            self.site.clock.advance(TICK_SECONDS)
            self._controller()
            for agent in list(self.agents.values()):
                agent.reconcile()
            self._probers()
            if tick % 2 and self.operator is not None and self.api:
                self.operator.reconcile()
            self._watch()

    @property
    def api(self) -> bool:
        """Whether the Kubernetes API answers."""
        return not self.site.orders.away

    @api.setter
    def api(self, answers: bool) -> None:
        self.site.orders.away = not answers

    @property
    def held(self) -> set[int]:
        """Whose process a quarantine agent has stopped."""
        return {b for b, process in self.processes.items() if process.stopped}

    def _controller(self) -> None:
        now = self.site.clock.monotonic()
        for broker in self.cluster.brokers.values():
            if broker.frozen and broker.alive:
                since = self._frozen_since.setdefault(broker.id, now)
                if now - since >= SESSION_SECONDS and not broker.fenced:
                    self.cluster.fence(broker.id)
            else:
                self._frozen_since.pop(broker.id, None)
                if broker.alive and broker.fenced:
                    self.cluster.revive(broker.id)

    def _probers(self) -> None:
        for broker in self.cluster.brokers:
            source = f"broker-{broker}"
            reading = Reading.FAILING if broker in self.slow else Reading.PASSING
            if self.api:
                self.site.signals.say(broker, reading, type=SignalType.STORAGE_LATENCY, sources=[source])
            if self.api and broker in self._unheard:
                self.site.signals.put(replace(self._unheard.pop(broker), age_seconds=0.0))
            for name, speaks in ((source, self.api), (f"agent-{broker}", self.api and broker in self.agents)):
                (self.site.signals.resume if speaks else self.site.signals.silence)(name)

    def _held_elsewhere(self, broker: int) -> int | None:
        """Another broker whose agent says that it is held."""
        said = self.site.signals.signals()
        others = (s.broker for s in said if s.type == QUARANTINE_AGENT and s.reading is Reading.FAILING)
        return next((b for b in others if b != broker), None)

    # The watcher.

    def _watch(self) -> None:
        now = self.site.clock.monotonic()
        if not self.api or self.operator is None:
            self._trouble_at = now
        if len(self.held) > 1:
            self.broken.append(f"{sorted(self.held)} are held at once at {now}")
        for broker in self.cluster.brokers:
            if broker not in self.held:
                self._problem_since.pop(broker, None)
                self._held_since.pop(broker, None)
                continue
            if broker not in self._held_since:
                self._held_since[broker] = now
                self.holds += 1
            if now - self._held_since[broker] > LIMIT_SECONDS + LOSS_SECONDS:
                self.broken.append(f"broker {broker} is held beyond the limit at {now}")
            problem = self._problem(broker)
            since = self._problem_since.setdefault(broker, now) if problem else self._problem_since.pop(broker, now)
            bound = LOST_SECONDS if now - self._trouble_at <= LOST_SECONDS else LOSS_SECONDS
            if problem and now - since > bound:
                self.broken.append(f"broker {broker} is held at {now} for {now - since} s though {problem}")

    def _problem(self, broker: int) -> str:
        """Why the broker must not be held, by the truth."""
        answering = {b.id for b in self.cluster.brokers.values() if b.alive and not b.fenced and not b.frozen}
        spare = self.policy.quarantine.spare_isr_members
        for p in self.cluster.partitions():
            least = int(self.cluster.topic_settings(p.topic)[MIN_ISR])
            if broker in p.replicas and len(set(p.isr) & answering - {broker}) < least + spare:
                return f"{p.name} has the ISR {p.isr}"
        if others := set(self.cluster.brokers) - {broker} - answering:
            return f"{sorted(others)} do not answer"
        if broker in self.voters and len(self.voters & answering - {broker}) < len(self.voters) // 2 + 1 + spare:
            return "the quorum has none to spare"
        if broker not in self.slow:
            return "its disk is fast"
        if not self.api or self.operator is None:
            return "its order is not renewed"
        return "" if broker in self.agents else "it has no agent"
