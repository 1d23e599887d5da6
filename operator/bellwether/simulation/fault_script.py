"""Fault scripts: what happens to a simulated cluster, by second, as YAML values, and what its operator then does.

In: values such as ``{seconds: 60, events: {5: [{say: {brokers: [1], reading: Failing}}]}}``, a cluster in memory and a
policy. Out: rows of a timeline, and state and leaders of each broker over time; or ValueError with the second, the verb
and the remedy.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import yaml

from bellwether import documentation
from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Harm, OverrideState, Reading, SignalType, UnreachableCause
from bellwether.gather import Memory
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_world import SimulatedSite
from bellwether.simulation.replay_timeline import Row
from bellwether.simulation.simulated_operator import PartitionChange, SimulatedOperator

VANTAGES = ("vantage-1", "vantage-2")
"""Vantages of a policy that names none."""

SECONDS_LIMIT = 86400
EVENT_LIMIT = 10_000

Act = Callable[["Stage", Any], object]


@dataclass(frozen=True)
class Stage:
    """Where a script happens: the site, and the vantages that report if an event names none."""

    site: SimulatedSite
    vantages: tuple[str, ...] = ("eu-west-1a", "eu-west-1b")


@dataclass(frozen=True, slots=True)
class Event:
    """One event: a verb of ``VERBS`` and what it is about."""

    verb: str
    about: Any

    def happen(self, stage: Stage) -> None:
        """Change the site. Raises ValueError if the event does not fit to the cluster."""
        try:
            VERBS[self.verb](stage, self.about)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{self}: {type(error).__name__}: {error}: its form is on {documentation.page('simulate.md')}"
            ) from None
        except ValueError as error:
            raise ValueError(f"{self}: {error}") from None

    def __str__(self) -> str:
        return yaml.safe_dump({self.verb: self.about}, default_flow_style=True, sort_keys=False, width=10**6).strip()


@dataclass(frozen=True, slots=True)
class FaultScript:
    """Events by second, and how long the simulation lasts."""

    seconds: int
    events: Mapping[int, tuple[Event, ...]] = field(default_factory=dict)


def script_of(values: Any) -> FaultScript:
    """The script in these values. Raises ValueError."""
    if not isinstance(values, Mapping) or not isinstance(values.get("events", {}), Mapping):
        raise ValueError("a fault script is an object with seconds, and with events by second")
    for name in values:
        if name not in ("seconds", "events"):
            raise ValueError(f"{name}: no such field: a fault script has seconds and events")
    seconds = _second("seconds", values.get("seconds"))
    events = {_second("events", at): _events(at, several) for at, several in values.get("events", {}).items()}
    if sum(map(len, events.values())) > EVENT_LIMIT:
        raise ValueError(f"events: more than {EVENT_LIMIT} events, the limit: write fewer")
    late = [at for at in events if at > seconds]
    if late:
        raise ValueError(f"events.{min(late)}: is after the end (seconds: {seconds}): raise seconds, or remove it")
    return FaultScript(seconds, events)


def _events(at: Any, several: Any) -> tuple[Event, ...]:
    if not isinstance(several, list) or not all(isinstance(one, Mapping) for one in several):
        raise ValueError(f"events.{at}: must be a list of events, such as [{{kill: [1]}}]")
    found = tuple(Event(str(verb), about) for one in several for verb, about in one.items())
    for event in found:
        if event.verb not in VERBS:
            near = difflib.get_close_matches(event.verb, VERBS, n=1, cutoff=0.7)
            meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(VERBS)}"
            raise ValueError(f"events.{at}: no such event {event.verb} ({meant})")
    return found


def _second(name: str, given: Any) -> int:
    text = str(given)
    if not text.isdecimal() or int(text) > SECONDS_LIMIT:
        raise ValueError(f"{name}: {given!r} must be a number of seconds, at most {SECONDS_LIMIT}")
    return int(text)


def _say(stage: Stage, said: Mapping[str, Any]) -> None:
    kind = said.get("type", SignalType.EXTERNAL_REACHABILITY)
    external = kind == SignalType.EXTERNAL_REACHABILITY
    latency, harm = said.get("milliseconds"), said.get("harm")
    for broker in said["brokers"]:
        _known(stage, broker)
        stage.site.signals.say(
            broker,
            Reading(said["reading"]),
            type=kind,
            sources=said.get("from", stage.vantages if external else [f"disk-{broker}"]),
            control=Reading(said.get("control", "Passing" if external else "Unknown")),
            latency_seconds=None if latency is None else latency / 1000,
            value=said.get("value"),
            directory=said.get("directory", ""),
            cause=UnreachableCause(said["cause"]) if "cause" in said else None,
            harm=None if harm is None else _harm(harm, stage.site.clock.now()),
            metadata_log=said.get("metadataLog"),
            broken_link_to=said.get("brokenLinkTo"),
            listeners=said.get("listeners", ()),
        )


def _harm(said: Mapping[str, Any], now: datetime) -> Harm:
    """What probes lost, in seconds: ``lost`` in all, ``frozen`` in freezes that are over."""
    ongoing = said.get("ongoing", True)
    return Harm(
        float(said["lost"]), 1.0 if ongoing else 0.0, now, ongoing, frozen_seconds=float(said.get("frozen", 0.0))
    )


def _override(stage: Stage, said: Mapping[str, Any]) -> None:
    seconds = said.get("forSeconds")
    until = stage.site.clock.now() + timedelta(seconds=seconds) if seconds is not None else None
    broker = _known(stage, said["broker"])
    stage.site.signals.override(broker, OverrideState(said["state"]), said.get("reason", ""), until)


def _drain(stage: Stage, said: Mapping[str, Any]) -> None:
    until = stage.site.clock.now() + timedelta(seconds=said["forSeconds"])
    stage.site.signals.drain(_known(stage, said["broker"]), said["reason"], until)


def _pod(stage: Stage, said: Mapping[Any, str]) -> None:
    pods = stage.site.pods
    if pods is None:
        raise ValueError("pods are not watched here")
    for broker, state in said.items():
        number = _known(stage, int(broker))
        pods.pop(number, None)
        if state != "gone":
            pods[number] = Pod(f"kafka-{broker}", ready=state == "ready", leaving=state == "terminating")


def _reorder(stage: Stage, said: Mapping[str, Any]) -> None:
    for name, order in said.items():
        stage.site.cluster.foreign_reorder(_named(name), order)


def _log_dirs(stage: Stage, said: Mapping[Any, Mapping[str, Any]]) -> None:
    for broker, directories in said.items():
        found = {path: [_named(name) for name in names] for path, names in directories.items()}
        stage.site.cluster.lay_out(_known(stage, int(broker)), found)


def _named(name: str) -> TopicPartition:
    topic, _, index = name.rpartition("-")
    return TopicPartition(topic, int(index))


def _known(stage: Stage, broker: int) -> int:
    if broker not in stage.site.cluster.brokers:
        known = ", ".join(map(str, sorted(stage.site.cluster.brokers)))
        raise ValueError(f"there is no broker {broker}; there are {known}")
    return broker


def _each(act: Callable[[SimulatedSite, Any], object], *, brokers: bool = False) -> Act:
    def of_all(stage: Stage, several: Any) -> None:
        for one in several:
            act(stage.site, _known(stage, one) if brokers else one)

    return of_all


VERBS: dict[str, Act] = {
    "say": _say,
    "override": _override,
    "drain": _drain,
    "pod": _pod,
    "lift": _each(lambda s, broker: s.signals.lift(broker), brokers=True),
    "silence": _each(lambda s, source: s.signals.silence(source)),
    "resume": _each(lambda s, source: s.signals.resume(source)),
    "kill": _each(lambda s, broker: s.cluster.kill(broker), brokers=True),
    "fence": _each(lambda s, broker: s.cluster.fence(broker), brokers=True),
    "revive": _each(lambda s, broker: s.cluster.revive(broker), brokers=True),
    "trail": _each(lambda s, broker: s.margins.trailing.add(broker), brokers=True),
    "keepUp": _each(lambda s, broker: s.margins.trailing.discard(broker), brokers=True),
    "recreate": _each(lambda s, topic: s.cluster.recreate_topic(topic)),
    "delete": _each(lambda s, topic: s.cluster.delete_topic(topic)),
    "reorder": _reorder,
    "logDirs": _log_dirs,
    "balance": lambda stage, _: stage.site.cluster.auto_balance(),
}
"""What may happen to a cluster."""


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds in which a broker's state, demotion and number of leaders were the same."""

    start: int
    end: int
    state: str
    demoted: bool
    leaders: int


@dataclass(frozen=True)
class Simulation:
    """What happened: rows by time, changed partitions, and the spans of each broker."""

    seconds: int
    rows: tuple[Row, ...]
    changes: tuple[PartitionChange, ...]
    brokers: dict[int, tuple[Span, ...]]


def simulate(cluster: MemoryCluster, policy: Policy, script: FaultScript) -> Simulation:
    """Run the script. All brokers pass at the start. Raises ValueError for an event that does not fit the cluster."""
    site = SimulatedSite(cluster, pods={})
    stage = Stage(site, policy.detection.external_reachability.vantages or VANTAGES)
    _all_pass(stage, policy)
    seen: dict[int, list[tuple[int, str, bool, int]]] = {}

    def see(report: Report) -> None:
        second, leaders = int(site.clock.monotonic()), cluster.snapshot().leaders()
        for broker in report.brokers:
            now = str(broker.verdict.state), broker.demoted is not None, leaders.get(broker.broker, 0)
            moments = seen.setdefault(broker.broker, [])
            if moments and moments[-1][0] == second:
                moments.pop()
            if not moments or moments[-1][1:] != now:
                moments.append((second, *now))

    operator = SimulatedOperator(cluster, site.process(), policy, Memory(UndoRecord(cluster.cluster_id)), see=see)
    for second in sorted({0, script.seconds, *script.events}):
        operator.run(second)
        for event in script.events.get(second, ()):
            try:
                event.happen(stage)
            except ValueError as error:
                raise ValueError(f"events.{second}: {error}") from None
            operator.timeline.rows.append(Row(site.clock.now(), "event", f"event: {event}"))
        operator.reconcile()
    spans = {broker: _spans(moments, script.seconds) for broker, moments in sorted(seen.items())}
    return Simulation(script.seconds, tuple(operator.timeline.rows), tuple(operator.changes), spans)


def _all_pass(stage: Stage, policy: Policy) -> None:
    for broker in sorted(stage.site.cluster.brokers):
        if policy.detection.external_reachability.enabled:
            stage.site.signals.say(broker, Reading.PASSING, sources=stage.vantages)
        if policy.detection.storage_latency.enabled:
            source = f"disk-{broker}"
            stage.site.signals.say(broker, Reading.PASSING, type=SignalType.STORAGE_LATENCY, sources=[source])


def _spans(moments: list[tuple[int, str, bool, int]], end: int) -> tuple[Span, ...]:
    closed = [*moments, (end, "", False, 0)]
    return tuple(Span(a[0], b[0], *a[1:]) for a, b in pairwise(closed))
