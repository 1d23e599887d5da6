"""Failures step by step on real brokers: in each state what the doctor says, next to what the brokers then do.

In: a cluster of four brokers with controllers of their own, whether it keeps an ELR, and whether brokers are shut down
or killed. Out: a table, and an assertion at every step that the two agree. Brokers 1 to 3 hold the topics and die;
broker 4 holds none of them and stays, so that one answers. Each topic is one case of replication factor and
``min.insync.replicas``, and all of them go through the same steps side by side.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from bellwether.adapters.kafka.brokers.log_ends import LogEnds
from bellwether.adapters.kafka.config_reader import KafkaConfigs
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.cli.diagnosis.cluster_examination import Examination, Examiner
from bellwether.cli.main import main
from bellwether.core.doctor.risks import OFFLINE, Diagnosis, Risk
from bellwether.core.model.cluster import Partition, TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.kafka import Reorder
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.last_samples import last_samples
from testkit.kafka.risk_clients import NO_BROKER, TAKEN, TOO_FEW, consume, produce
from testkit.values.security_settings import PLAINTEXT
from waiting import limit, until

PATIENT = Limits(opening_seconds=5, finding_seconds=10, request_seconds=10, read_seconds=30)
WAIT_SECONDS = 120.0
STAYS = 4

CODES = {
    "S": Risk.IN_SYNC,
    "U": Risk.UNDER_REPLICATED,
    "A": Risk.AT_MIN_ISR,
    "M": Risk.UNDER_MIN_ISR,
    "L": Risk.LEADER_LOST,
    "N": Risk.LAST_ISR_MEMBER_LOST,
    "X": Risk.ALL_REPLICAS_LOST,
}
"""The letters in which expected classes are written down, one for each topic."""


@dataclass(frozen=True, slots=True)
class Case:
    """One topic of one partition, led by broker 1 at first."""

    name: str
    replicas: tuple[int, ...]
    min_isr: int


THREE, TWO = (1, 2, 3), (1, 2)
CASES = (
    Case("rf3-min1", THREE, 1),
    Case("rf3-min2", THREE, 2),
    Case("rf2-min1", TWO, 1),
    Case("rf2-min2", TWO, 2),
    Case("rf3-min1-elected", THREE, 1),
    Case("rf3-min2-elected", THREE, 2),
    Case("rf3-min2-lowered", THREE, 2),
)
ELECTED = ("rf3-min1-elected", "rf3-min2-elected")
LOWERED = "rf3-min2-lowered"
TRAPPED = Case("rf3-min2-changed-too-late", THREE, 2)
"""Its ``min.insync.replicas`` is changed without a leader, against the advice; where an ELR is kept."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the brokers did with one topic in one state."""

    acks_all: str
    acks_one: str
    read: bool
    shown: bool

    @classmethod
    def foretold(cls, found: Diagnosis) -> Seen:
        """What the doctor's class says that they do."""
        led = found.risk not in OFFLINE
        under = found.risk is Risk.UNDER_MIN_ISR
        return cls(
            acks_all=NO_BROKER if not led else TOO_FEW if under else TAKEN,
            acks_one=TAKEN if led else NO_BROKER,
            read=led,
            shown=led and not under,
        )


def election_foretold(p: Partition, live: Collection[int]) -> str:
    """What a preferred election answers: it is no way out without an eligible leader."""
    first = p.replicas[0]
    if p.leader == first:
        return "ELECTION_NOT_NEEDED"
    may_lead = first in live and (first in p.isr or (not p.isr and first in p.elr))
    return "NONE" if may_lead else "PREFERRED_LEADER_NOT_AVAILABLE"


def leads_once_back(
    found: Diagnosis, broker: int, live: Collection[int], *, elr_enabled: bool, killed: bool
) -> int | None:
    """Who leads, by what the doctor says, once this broker has been started; ``live`` are those that run already."""
    p = found.partition
    if not elr_enabled or not killed:
        return broker if broker in found.awaited else None
    # It is not eligible any more as it returns; once none is, the last leader leads.
    last = p.leader if p.leader is not None else next(iter(p.last_known_elr), None)
    left = {*p.isr, *p.elr} - {broker}
    return last if not left and last in {*live, broker} else None


@dataclass
class Walk:
    """One walk through all the steps, on topics of its own; ``rows`` is the table so far."""

    kafka: Any
    elr_enabled: bool
    killed: bool
    folder: Path
    tag: str = "matrix"
    rows: list[tuple[str, ...]] = field(default_factory=list)
    written: dict[str, list[str]] = field(default_factory=dict)
    unsure: dict[str, list[str]] = field(default_factory=dict)
    unanswered: dict[str, list[str]] = field(default_factory=dict)
    """Values sent to a leader that did not answer in time: it may have written them all the same."""
    _seen: dict[str, Seen] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._way = "killed" if self.killed else "stopped"
        self.cases = (*CASES, TRAPPED) if self.elr_enabled else CASES
        self._bootstrap = str(self.kafka.broker(STAYS).internal)
        connection = Connection((self._bootstrap,), PLAINTEXT)
        nodes = BrokerPool(connection, PATIENT)
        self.store = self.folder / f"samples-{self._way}"
        store = Store.open(str(self.store))
        self._mover, self._ends = KafkaMover(nodes), LogEnds(connection)
        self._examiner = Examiner(
            KafkaReader(nodes), KafkaConfigs(nodes), self._ends, lambda c, wanted: last_samples(store, c, wanted)
        )
        self._names: Mapping[int, str] = {}

    # What is there.

    def topic(self, case: str) -> str:
        """The name of the topic of a case on this walk."""
        return f"{self.tag}-{self._way}-{case}"

    def case(self, topic: str) -> str:
        """The case of a topic."""
        return topic.removeprefix(f"{self.tag}-{self._way}-")

    @property
    def topics(self) -> tuple[str, ...]:
        """The names of all topics."""
        return tuple(self.topic(case.name) for case in self.cases)

    def create(self) -> None:
        """Make the topics."""
        from realparts.kafka_topics import create_topics

        for case in self.cases:
            create_topics(
                self._bootstrap,
                {self.topic(case.name): 1},
                configs={"min.insync.replicas": str(case.min_isr)},
                assignments={self.topic(case.name): [case.replicas]},
            )

    def set_floor(self, case: str, least: int) -> None:
        """Set ``min.insync.replicas`` of a topic, by the command that the doctor names."""
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

        from realparts.kafka_topics import admin

        entry = ConfigEntry("min.insync.replicas", str(least), incremental_operation=AlterConfigOpType.SET)
        wanted = ConfigResource(ConfigResource.Type.TOPIC, self.topic(case), incremental_configs=[entry])
        client = admin(self._bootstrap)  # kept until its answer is in: that dies with it
        for answer in client.incremental_alter_configs([wanted], request_timeout=limit(15)).values():
            answer.result()

    # Brokers.

    def lose(self, *brokers: int) -> None:
        """Brokers go: all of them at the same moment."""
        import threading

        def end(broker: int) -> None:
            if self.killed:
                self.kafka.broker(broker).kill()
            else:
                self.kafka.broker(broker).stop()

        threads = [threading.Thread(target=end, args=(broker,)) for broker in brokers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def start(self, *brokers: int) -> None:
        """Brokers come back, side by side."""
        for broker in brokers:
            self.kafka.broker(broker).process.start()
        for broker in brokers:
            self.kafka.broker(broker).wait_ready()

    # Steps.

    def examined(self) -> Examination:
        """What the doctor finds now."""
        return self._examiner.examine(self.topics)

    def reach(self, expected: str, *, fenced: bool = True) -> Examination:
        """Wait until the doctor says what is expected of each topic, one letter each; fails when it never does.

        ``fenced``: and until the controller has fenced the broker that does not answer.
        """
        wanted = {self.topic(c.name): CODES[code] for c, code in zip(self.cases, expected, strict=False)}
        last: list[Examination] = []

        def unlike() -> dict[str, tuple[str, str]]:
            classes = {d.partition.topic: d.risk for d in last[-1].risk_summary.diagnoses}
            return {t: (str(classes[t]), str(risk)) for t, risk in wanted.items() if classes[t] is not risk}

        def reached() -> bool:
            last[:] = [self.examined()]
            return not unlike() and not (fenced and last[-1].silent)

        until(reached, WAIT_SECONDS, every=0.3, seen=lambda: f"{unlike()}: {_states(last[-1])}")
        return last[-1]

    def step(self, what: str, expected: str) -> Examination:
        """A state: what the doctor says is as expected, and what the brokers then do is as the doctor says."""
        attempts = itertools.count()

        def disagreements() -> tuple[Examination, object]:
            # Each broker and client learns of a change in its own time, and a busy machine serves late.
            found, attempt = self.reach(expected), next(attempts)
            return found, self._disagreements(found, f"{what}.{attempt}", min(4, 1 + attempt))

        found, _ = until(disagreements, WAIT_SECONDS, what, so=lambda pair: not pair[1], every=0.5)
        self._note(what, found, self._elections(what, found))
        return found

    def glimpse(self, what: str, expected: str) -> None:
        """A state that passes by itself: the doctor says what is expected, and clients are not served meanwhile."""
        found = self.reach(expected, fenced=False)
        self._seen = {d.partition.topic: Seen.foretold(d) for d in found.risk_summary.diagnoses}
        seen = self.write(f"{what}/all", "all")
        foretold = {topic: one.acks_all for topic, one in self._seen.items()}
        assert seen == foretold, f"{what}: {seen}, foretold: {foretold}: {_states(found)}"
        self._note(what, found, {})

    def returned(self, before: Examination, broker: int) -> None:
        """The broker is back: whom the doctor called awaited leads by itself, and no other does."""
        live = before.cluster.live.difference(before.silent)

        def unlike() -> dict[str, object]:
            after = {d.partition.topic: d.partition for d in self.examined().risk_summary.diagnoses}
            others: dict[str, object] = {}
            for found in before.risk_summary.diagnoses:
                if found.risk not in OFFLINE:
                    continue
                foretold = leads_once_back(found, broker, live, elr_enabled=self.elr_enabled, killed=self.killed)
                if after[found.partition.topic].leader != foretold:
                    others[found.partition.topic] = (foretold, found.partition, after[found.partition.topic])
            return others

        until(
            unlike,
            WAIT_SECONDS,
            f"broker {broker} is back, and who leads is as foretold",
            so=lambda found: not found,
            every=0.3,
        )

    def elect_preferred(self) -> dict[str, str]:
        """A preferred election of every topic: Kafka's word by topic."""
        names = [TopicPartition(topic, 0) for topic in self.topics]
        return {name.topic: outcome.error for name, outcome in self._mover.elect(names).items()}

    def reorder(self, name: TopicPartition, order: tuple[int, ...]) -> None:
        """Give a partition another order of its replicas, and see it."""
        assert self._mover.reorder([Reorder(name, order)])[name].ok
        until(lambda: self.examined().of(name).partition.replicas == order, WAIT_SECONDS, every=0.3)

    def led_by(self, broker: int) -> None:
        """Wait until the broker leads all topics."""

        def leads() -> bool:
            if {d.partition.leader for d in self.examined().risk_summary.diagnoses} == {broker}:
                return True
            self.elect_preferred()
            return False

        until(leads, WAIT_SECONDS, f"broker {broker} leads all topics", every=0.3)

    def write(self, value: str, acks: str, patience: int = 1) -> dict[str, str]:
        """Write a record to every topic and remember who took it."""
        seen = produce(self._bootstrap, self.topics, acks, value, patience)
        kept = self.written if acks == "all" else self.unsure
        for topic, outcome in seen.items():
            if outcome == TAKEN:
                kept.setdefault(topic, []).append(value)
        return seen

    def sample(self) -> None:
        """``bellwether sample --once``."""
        done = self.run("sample", "--once", "--store", str(self.store), "--bootstrap", self._bootstrap)
        assert done.exit_code in (0, 4), done.output

    def ends(self, broker: int) -> dict[str, int]:
        """Where the broker's copies end, by topic."""
        names = {TopicPartition(topic, 0): -1 for topic in self.topics}
        noted = self._ends.ask(self.kafka.broker(broker).internal, names, 10, 20)
        return {name.topic: end for name, end in noted.ends.items()}

    def run(self, *arguments: str, typed: str = "") -> Result:
        """A command of ours."""
        return CliRunner().invoke(main, list(arguments), input=typed)

    def doctor(self, *arguments: str, typed: str = "") -> Result:
        """``bellwether doctor``."""
        return self.run("doctor", "--bootstrap", self._bootstrap, "--store", str(self.store), *arguments, typed=typed)

    def shown(self, led: Callable[[str], bool] = lambda _: True) -> dict[str, list[str]]:
        """What consumers are shown now."""
        return consume(self._bootstrap, self.topics, [t for t in self.topics if led(t)], WAIT_SECONDS)

    def call(self, names: Mapping[int, str]) -> None:
        """From now on brokers have these names in the table: which of two was lost last is chance."""
        self._names = names

    # Inside.

    def _disagreements(self, found: Examination, value: str, patience: int) -> dict[str, object]:
        foretold = {d.partition.topic: Seen.foretold(d) for d in found.risk_summary.diagnoses}
        led = {topic for topic, one in foretold.items() if one.read}
        every = self.write(f"{value}/all", "all", patience)
        one = self.write(f"{value}/1", "1", patience)
        values = consume(self._bootstrap, self.topics, led)
        unlike: dict[str, object] = {}
        for topic, wanted in foretold.items():
            there = values.get(topic)
            seen = Seen(
                every.get(topic, ""), one.get(topic, ""), there is not None, f"{value}/1" in (there if there else ())
            )
            if seen != wanted:
                unlike[topic] = (wanted, seen)
            if wanted.read:
                late = [
                    v
                    for v, acks in ((f"{value}/all", seen.acks_all), (f"{value}/1", seen.acks_one))
                    if acks == NO_BROKER
                ]
                self.unanswered.setdefault(topic, []).extend(late)
        if not unlike:
            self._seen = foretold
        return unlike

    def _elections(self, what: str, found: Examination) -> dict[str, str]:
        live = found.cluster.live.difference(found.silent)
        foretold = {d.partition.topic: election_foretold(d.partition, live) for d in found.risk_summary.diagnoses}
        said = self.elect_preferred()
        assert said == foretold, f"{what}: preferred elections: {said}, foretold: {foretold}: {_states(found)}"
        return said

    def _note(self, what: str, found: Examination, said: Mapping[str, str]) -> None:
        for d in sorted(found.risk_summary.diagnoses, key=lambda d: self.topics.index(d.partition.topic)):
            p, seen = d.partition, self._seen[d.partition.topic]
            self.rows.append(
                (
                    what,
                    self.case(p.topic),
                    self._called([] if p.leader is None else [p.leader]),
                    self._called(p.isr),
                    self._called(p.elr),
                    str(d.risk),
                    seen.acks_all,
                    seen.acks_one + (", shown" if seen.shown else ", not shown" if seen.acks_one == TAKEN else ""),
                    "to the end" if seen.shown else "to the high watermark" if seen.read else "no",
                    self._elected(p, said),
                    self._called(d.awaited) if d.risk in OFFLINE else "",
                )
            )

    def _elected(self, p: Partition, said: Mapping[str, str]) -> str:
        """Where the table calls brokers otherwise, chance decides whether the first in the order is who leads."""
        if self._names and p.leader is not None:
            return "by who y is"
        return said.get(p.topic, "not asked")

    def _called(self, brokers: Collection[int]) -> str:
        return " ".join(sorted(self._names.get(b, str(b)) for b in brokers)) or "-"


HEAD = (
    "state",
    "topic",
    "leader",
    "ISR",
    "ELR",
    "doctor says",
    "acks=all",
    "acks=1",
    "reads",
    "preferred election",
    "awaited",
)


def table(rows: Collection[tuple[str, ...]]) -> str:
    """The rows as a Markdown table; a state is named once."""
    lines = [_line(HEAD), _line(["---"] * len(HEAD))]
    before = ""
    for what, *rest in rows:
        lines.append(_line(["" if what == before else what, *rest]))
        before = what
    return "\n".join(lines)


def _line(cells: Collection[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _states(found: Examination) -> list[str]:
    return [
        f"{p.name} leader={p.leader} isr={p.isr} elr={p.elr} last={p.last_known_elr} {d.risk}"
        for d in found.risk_summary.diagnoses
        for p in [d.partition]
    ]
