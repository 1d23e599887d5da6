"""A verdict that is reused for equal inputs equals the verdict that judging again gives, in every reconcile."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.detection.verdicts import Verdict, judge
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.history.flap_damping import FlapCounter
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import DemotedBroker
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection, Reachability, ReplicationLag, SelfReachability
from bellwether.core.settings.policy import Policy
from bellwether.core.settings.source_settings import OnFailing, PrometheusRule
from bellwether.core.signals import ListenerReading, Reading, Signal, SignalType
from testkit.values.builders import after, cluster, demoted, partition, record

BROKERS = (1, 2, 3, 4)
RULE = PrometheusRule(name="idle", query="up", threshold=1.0)
SOURCES = {
    SignalType.EXTERNAL_REACHABILITY: ("a", "b", "c"),
    SignalType.SELF_REACHABILITY: ("own",),
    SignalType.STORAGE_LATENCY: ("disk", "other-disk"),
    SignalType.REPLICATION_LAG: ("lag",),
    SignalType.PROMETHEUS: ("idle", "unasked"),
}
Key = tuple[int, SignalType, str]
KEYS: list[Key] = [(b, kind, source) for b in BROKERS for kind, sources in SOURCES.items() for source in sources]
DETECTIONS = [
    Detection(),
    Detection(self_reachability=SelfReachability(enabled=False)),
    Detection(external_reachability=Reachability(enabled=False)),
    Detection(external_reachability=Reachability(vantages=("b", "c"), startup_grace_seconds=5)),
    Detection(tolerance=3, replication_lag=ReplicationLag(enabled=False)),
    Detection(
        prometheus_rules=(RULE, replace(RULE, name="asked", on_failing=OnFailing.SUSPECT)),
    ),
]

readings = st.sampled_from([Reading.PASSING, Reading.PASSING, Reading.FAILING, Reading.UNKNOWN])
ages = st.sampled_from([None, 0.0, 1.0, 3.0, 3.1, 10.0, 10.5, 30.5, 61.0])
listeners = st.sampled_from([(), *(tuple(ListenerReading(n, Reading.FAILING) for n in names) for names in ("X", "XY"))])
latencies = st.sampled_from([None, 0.001, 0.0011, 0.002, 0.4])


def word(key: Key, reading: Reading, draw: st.DrawFn) -> Signal:
    """A word with figures and a message that may change by themselves."""
    return Signal(
        *key,
        reading,
        after(draw(st.integers(-2, 0))),
        draw(ages) if draw(st.integers(0, 3)) == 0 else 1.0,
        draw(st.sampled_from(Reading)),
        draw(latencies),
        draw(st.sampled_from(["", "so it is"])),
        draw(latencies),
        listeners=draw(listeners) if key[1] is SignalType.EXTERNAL_REACHABILITY else (),
    )


@dataclass
class Story:
    """What is so at one moment, and what may happen to it."""

    said: dict[Key, Signal]
    policy: Policy
    fenced: set[int] = field(default_factory=set)
    away: set[int] = field(default_factory=set)
    held: dict[int, DemotedBroker] = field(default_factory=dict)

    def goes_on(self, draw: st.DrawFn) -> None:
        """One thing changes."""
        broker = draw(st.sampled_from(BROKERS))
        match draw(
            st.sampled_from(["word", "reading", "everywhere", "age", "silence", "brokers", "demoted", "policy"])
        ):
            case "word":
                key = draw(st.sampled_from(KEYS))
                self.said[key] = word(key, draw(readings), draw)
            case "reading":
                key = draw(st.sampled_from(sorted(self.said)))
                self.said[key] = replace(self.said[key], reading=draw(readings))
            case "everywhere":
                source, reading = draw(st.sampled_from(["a", "b", "own"])), draw(readings)
                self.said |= {k: replace(s, reading=reading) for k, s in self.said.items() if k[2] == source}
            case "age":
                key = draw(st.sampled_from(sorted(self.said)))
                self.said[key] = replace(self.said[key], age_seconds=draw(ages))
            case "silence":
                kind = draw(st.sampled_from(SignalType))
                self.said = {k: s for k, s in self.said.items() if k[:2] != (broker, kind)} or self.said
            case "brokers":
                draw(st.sampled_from([self.fenced, self.away])).symmetric_difference_update({broker})
            case "demoted":
                why = draw(st.sampled_from([Reason.EXTERNALLY_UNREACHABLE, Reason.STORAGE_SLOW, Reason.SIGNAL_FAILING]))
                before = len(self.held)
                self.held = {b: d for b, d in self.held.items() if b != broker}
                if len(self.held) == before:
                    signal = draw(st.sampled_from(SignalType)) if why is Reason.SIGNAL_FAILING else ""
                    self.held[broker] = replace(demoted(broker), reason=why, signal=signal)
            case _:
                self.policy = replace(self.policy, detection=draw(st.sampled_from(DETECTIONS)))

    def reconcile(self, now: datetime) -> tuple[Snapshot, Policy]:
        """What an operator reads: equal values where nothing has changed, and not the same ones."""
        signals = tuple(replace(s) for s in self.said.values())
        undo = record(None, *self.held.values())
        snapshot = Snapshot(now, _metadata(self.fenced, self.away), undo, signals, flaps={1: FlapCounter(2, after(0))})
        return snapshot, replace(self.policy, detection=replace(self.policy.detection))


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[Snapshot, Policy]]:
    """Reconciles of one cluster that begins healthy."""
    kinds = draw(st.sets(st.sampled_from(list(SOURCES)), min_size=1))
    missing = draw(st.sampled_from([(), (), ("c",), ("other-disk",)]))
    said = {key: word(key, Reading.PASSING, draw) for key in KEYS if key[1] in kinds and key[2] not in missing}
    failing = draw(st.sampled_from([None, None, "a", "own"]))
    said |= {key: replace(s, reading=Reading.FAILING) for key, s in said.items() if key[2] == failing}
    story = Story(said, Policy(name="main", detection=draw(st.sampled_from(DETECTIONS))))
    now, reconciles = after(0), [story.reconcile(after(0))]
    for _ in range(draw(st.integers(2, 12))):
        now += timedelta(seconds=draw(st.sampled_from([0.5, 1.0, 20.0, 2000.0])))
        for _ in range(draw(st.integers(0, 2))):
            story.goes_on(draw)
        reconciles.append(story.reconcile(now))
    return reconciles


def _metadata(fenced: set[int], away: set[int]) -> Cluster:
    orders = [(1, 2, 3), (2, 3, 4), (3, 4, 1), (4, 1, 2)]
    registered = [b for b in BROKERS if b not in away]
    seen = [partition(index=i, replicas=o, isr=[b for b in o if b in registered]) for i, o in enumerate(orders)]
    return cluster(*seen, brokers=registered, fenced=sorted(fenced))


def _groundless(verdicts: dict[int, Verdict]) -> dict[int, Verdict]:
    return {broker: replace(verdict, inputs=None) for broker, verdict in verdicts.items()}


def _bytes(verdicts: dict[int, Verdict]) -> str:
    shown = [f.name for f in fields(Verdict) if f.name != "inputs"]
    return repr({broker: [getattr(verdict, name) for name in shown] for broker, verdict in verdicts.items()})


@given(stories())
def test_a_reused_verdict_equals_a_newly_judged_one(reconciles: list[tuple[Snapshot, Policy]]):
    short: dict[int, Verdict] = {}
    full: dict[int, Verdict] = {}
    for snapshot, policy in reconciles:
        short, full = judge(snapshot, policy, short), _groundless(judge(snapshot, policy, full))
        assert _bytes(short) == _bytes(full)
