"""Rebalance offline, without a Kubernetes API: build the problem, plan in local processes, verify, apply in waves.

Called by ``bellwether rebalance`` with ``--bootstrap``. The orders that a plan gives are baselines in an undo record,
kept in a file: a run that was broken off is gone on with by the plan's digest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.files.undo_record_file import FileLeadership, FileRecords
from bellwether.adapters.job_commands import Work, file_name
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.process_jobs import ProcessJobs
from bellwether.adapters.store.filesystems import Store
from bellwether.adapters.store.plans.plan_store import FilePlanStore
from bellwether.api.v1alpha1.spec.plan_runner import Resources, Runner, RunnerType
from bellwether.cli.offline.offline_leadership import NoSignals
from bellwether.core.demotion.decisions import manual_decision
from bellwether.core.detection.verdicts import judge
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import PlanApplication, UndoRecord
from bellwether.core.rebalance.problem import Problem
from bellwether.core.rebalance.problem_builder import build_problem, ineligible_brokers
from bellwether.core.rebalance.rebalance_plan import RebalancePlan
from bellwether.core.rebalance.waves import ApprovedPlan, RebalanceInput
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Mode, Policy
from bellwether.core.settings.rebalance import Rebalance
from bellwether.gather import Memory
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal
from bellwether.ports.jobs import JobState
from bellwether.ports.world import World
from bellwether.reconcile import reconcile

WHOSE = "by-hand/rebalance"
"""What stands for a policy in problems and plans that a person makes."""

LOOK_SECONDS = 0.5
TURN_SECONDS = 1.0
MOST_STOPS = 5

Say = Callable[[str], None]


@dataclass(frozen=True)
class Means:
    """What a run by hand works with: the cluster, the store, how many days to look back on, and Spark's heap."""

    connection: Connection
    uri: str
    days: int = 14
    memory: str = "4Gi"
    timeout_seconds: int = 3600


@dataclass(frozen=True)
class Applied:
    """What came of a plan: how far it has come, and the last turn's report."""

    application: PlanApplication | None
    report: Report


def plan_by_hand(means: Means, record: Path | None, settings: Rebalance, say: Say) -> RebalancePlan:
    """Make a plan of the cluster as it stands, and recheck it. Raises Terminal or Transient; nothing was moved."""
    clock = SystemClock()
    reader = KafkaReader(BrokerPool(means.connection))
    cluster = reader.read()
    say(f"Kafka cluster {cluster.cluster_id}: {len(cluster.brokers)} brokers, {len(cluster.partitions)} partitions")
    known = UndoRecord(cluster.cluster_id)
    if record is not None and record.exists():
        known = FileRecords(record, FileLeadership(record)).look(cluster.cluster_id)
    now = clock.now().replace(microsecond=0)
    verdicts = judge(Snapshot(now, cluster, known), Policy(name="command"), {})
    problem = build_problem(
        cluster,
        known,
        ineligible_brokers(cluster, known, verdicts),
        settings.objective,
        policy=WHOSE,
        made_at=now,
        capacities=settings.capacities,
        excluded=settings.excluded_topics,
    )
    run = f"at-{now:%Y%m%d-%H%M%S}"
    shelf = FilePlanStore(Store.open(means.uri), cluster.cluster_id, WHOSE)
    shelf.put_problem(_name(run), problem)
    _work(means, run, problem, say)
    plan = shelf.plan_for(_name(run)).plan
    say(f"plan {plan.digest} was rechecked from its inputs: everything that it claims is so")
    return plan


def apply_by_hand(means: Means, record: Path, settings: Rebalance, digest: str, say: Say) -> Applied:
    """Apply a plan of the store in waves until it has ended, or can go on no further now.

    Raises Terminal, Transient or Fenced; the record then stands, and the same digest goes on where this stopped.
    """
    clock, leadership = SystemClock(), FileLeadership(record)
    nodes = BrokerPool(means.connection)
    reader, mover = KafkaReader(nodes), KafkaMover(nodes)
    with _held(leadership):
        records = FileRecords(record, leadership)
        cluster_id = reader.read().cluster_id
        accepted = FilePlanStore(Store.open(means.uri), cluster_id, WHOSE).accepted(digest)
        taken = records.take_over(cluster_id)
        under_way = taken.application
        if under_way is not None and under_way.digest == digest and under_way.taken_up:
            say(f"going on: {under_way.taken_up} of {under_way.moves} partitions were taken up before")
        world = World(reader, mover, records, leadership, NoSignals(), clock)
        policy = Policy(name="command", mode=Mode.ENFORCE, rebalance=settings)
        memory = Memory(taken, grace_seconds=mover.request_timeout_seconds)
        return _turns(world, policy, memory, accepted, say)


def _turns(world: World, policy: Policy, memory: Memory, accepted: ApprovedPlan, say: Say) -> Applied:
    told, stops = "", 0
    while True:
        report, memory = reconcile(world, policy, memory, manual_decision(), RebalanceInput(accepted))
        progress, application = report.progress, memory.record.application
        if report.result.stopped is not None:
            say(f"stopped: {report.result.stopped.message}")
            stops += 1
        elif report.result.changed:
            stops = 0
        text = _told(application, progress.waits.message if progress is not None and progress.waits is not None else "")
        if text != told:
            say(text)
            told = text
        over = application is not None and application.ended is not None
        if (over and report.settled) or stops >= MOST_STOPS:
            return Applied(application, report)
        if not report.result.changed:
            pause = progress.again_seconds if progress is not None and progress.again_seconds else TURN_SECONDS
            world.clock.sleep(min(pause, 5 * TURN_SECONDS))


def _told(application: PlanApplication | None, waits: str) -> str:
    if application is None:
        return f"waiting: {waits}" if waits else "beginning"
    if application.ended is not None:
        return f"{application.ended}: {application.message}"
    text = f"{application.taken_up} of {application.moves} partitions taken up, {application.left_out} left out"
    return f"{text}; {waits}" if waits else text


def _work(means: Means, run: str, problem: Problem, say: Say) -> None:
    runner = Runner(
        type=RunnerType.PROCESS, resources=Resources(memory=means.memory), timeout_seconds=means.timeout_seconds
    )
    work = Work(run, _name(run), means.uri, means.days, problem.header.cluster_id)
    clock = SystemClock()
    jobs = ProcessJobs(lambda _: work, runner, clock)
    try:
        jobs.start(run)
        step, heard = "", 0
        while True:
            word = jobs.look(run)
            if word is None:
                raise Terminal(f"run {run} is not known any more")
            if word.state is JobState.FAILED:
                raise Terminal(f"no plan was made: {word.message}")
            if word.state is JobState.SUCCEEDED:
                return
            if word.message != step:
                step, heard = word.message, 0
                say({"loads": "measuring loads", "plan": "planning"}.get(step, step))
            lines = jobs.said(run)
            for line in lines[heard:]:
                say(f"  {line}")
            heard = len(lines)
            clock.sleep(LOOK_SECONDS)
    finally:
        jobs.close()


def _name(run: str) -> str:
    namespace, _, policy = WHOSE.partition("/")
    return file_name(namespace, policy, run)


@contextmanager
def _held(leadership: FileLeadership) -> Iterator[None]:
    leadership.acquire()
    try:
        yield
    finally:
        leadership.release()
