"""Rebalance offline, without a Kubernetes API: build the problem, plan, verify, apply in waves.

Called by ``bellwether rebalance`` with ``--bootstrap``. The orders of a plan become baselines in an undo record, which
is kept in a file; an interrupted run can be continued with the plan's digest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.files.undo_record_file import FileLeadership, FileRecords
from bellwether.adapters.kafka.connection.broker_pool import MANUAL_LIMITS, BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.demotion.decisions import manual_decision
from bellwether.core.model.undo_record import PlanApplication, UndoRecord
from bellwether.core.reporting.requeue import Requeue
from bellwether.core.settings.policy import Mode, Policy
from bellwether.core.settings.rebalance import Rebalance
from bellwether.core.waves.approved_plan import ApprovedPlan, RebalanceInput
from bellwether.extras import needed_extra
from bellwether.gather import Memory
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal
from bellwether.ports.kubernetes import UnchangingSignals
from bellwether.ports.world import World
from bellwether.reconcile import reconcile
from bellwether_load.controller.job_commands import file_name
from bellwether_load.plan.problem_builder import problem_by_hand
from bellwether_load.plan.rebalance_plan import BY_HAND
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_store import FilePlanStore, Rechecked

REQUEUE = Requeue(busy_seconds=1.0, idle_seconds=5.0, retry_seconds=1.0)
MOST_STOPS = 5
PROGRESS_SECONDS = 10
"""What takes longer says how far it has come, this often."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class OfflineRun:
    """Inputs of an offline run: cluster, store, and days of samples."""

    connection: Connection
    uri: str
    days: int


def plan_offline(inputs: OfflineRun, record: Path | None, settings: Rebalance, say: Say) -> Rechecked:
    """Compute a plan for the present cluster, and verify it. Raises Terminal or Transient; moves nothing."""
    _require_planner()
    store = Store.open(inputs.uri)
    store.require()
    clock = SystemClock()
    reader = KafkaReader(BrokerPool(inputs.connection, MANUAL_LIMITS))
    cluster = reader.read()
    say(f"Kafka cluster {cluster.cluster_id}: {len(cluster.brokers)} brokers, {len(cluster.partitions)} partitions")
    known = UndoRecord(cluster.cluster_id)
    if record is not None and record.exists():
        known = FileRecords(record, FileLeadership(record)).look(cluster.cluster_id)
    now = clock.now().replace(microsecond=0)
    problem = problem_by_hand(cluster, known, settings, policy=BY_HAND, made_at=now)
    namespace, _, policy = BY_HAND.partition("/")
    name = file_name(namespace, policy, f"at-{now:%Y%m%d-%H%M%S}")
    plans = FilePlanStore(store, cluster.cluster_id, BY_HAND)
    input_digest = plans.put_problem(name, problem)
    _work(inputs, name, cluster.cluster_id, say)
    found = plans.plan_for(name, input_digest)
    say(f"plan {found.plan.digest}: verified from its inputs")
    return found


def apply_offline(
    inputs: OfflineRun, record: Path, settings: Rebalance, digest: str, say: Say
) -> PlanApplication | None:
    """Apply a plan of the store in waves until it has ended, or cannot continue at present; returns its progress.

    Raises Terminal, Transient or Fenced; the record is kept then, and a run with the same digest continues.
    """
    clock, leadership = SystemClock(), FileLeadership(record)
    nodes = BrokerPool(inputs.connection, MANUAL_LIMITS)
    reader, mover = KafkaReader(nodes), KafkaMover(nodes)
    leadership.acquire()
    try:
        records = FileRecords(record, leadership)
        cluster_id = reader.read().cluster_id
        accepted = FilePlanStore(Store.open(inputs.uri), cluster_id, BY_HAND).accepted(digest)
        taken = records.take_over(cluster_id)
        under_way = taken.application
        if under_way is not None and under_way.digest == digest and under_way.taken_up:
            say(f"continuing: {under_way.taken_up} of {under_way.moves} partitions were already applied")
        world = World(reader, mover, records, leadership, UnchangingSignals(), clock)
        policy = Policy(name="command", mode=Mode.ENFORCE, rebalance=settings)
        memory = Memory(taken, grace_seconds=mover.request_timeout_seconds)
        return _reconcile_until_ended(world, policy, memory, accepted, say)
    finally:
        leadership.release()


def _reconcile_until_ended(
    world: World, policy: Policy, memory: Memory, accepted: ApprovedPlan, say: Say
) -> PlanApplication | None:
    printed, stops = "", 0
    while True:
        done = reconcile(world, policy, memory, manual_decision(), RebalanceInput(accepted))
        report, memory = done.report, done.memory
        progress, application = report.progress, memory.record.application
        if report.result.stopped is not None:
            say(f"aborted: {report.result.stopped.message}")
            stops += 1
        elif report.result.changed:
            stops = 0
        text = _progress_text(
            application, progress.waits.message if progress is not None and progress.waits is not None else ""
        )
        if text != printed:
            say(text)
            printed = text
        over = application is not None and application.ended is not None
        if (over and report.settled) or stops >= MOST_STOPS:
            return application
        world.clock.sleep(REQUEUE.after(report, policy, memory.record))


def _progress_text(application: PlanApplication | None, waits: str) -> str:
    if application is None:
        return f"waiting: {waits}" if waits else "starting"
    if application.ended is not None:
        return f"{application.ended}: {application.message}"
    text = f"{application.taken_up} of {application.moves} partitions applied, {application.left_out} skipped"
    return f"{text}; {waits}" if waits else text


def _require_planner() -> None:
    """Before anything is read."""
    for package in ("numpy", "scipy"):
        if find_spec(package) is None:
            raise Terminal(f"`rebalance --bootstrap` {needed_extra(ModuleNotFoundError(name=package))}")


def _work(inputs: OfflineRun, name: str, cluster_id: str, say: Say) -> None:
    """Measure the loads and make the plan, in this process. Raises Terminal or Transient."""
    from bellwether_load.jobs import loads
    from bellwether_load.jobs.compute_plan import compute_plan, write_plan
    from bellwether_load.jobs.engines import ProcessEngine
    from bellwether_load.jobs.plan import native_output_on_stderr

    clock = SystemClock()
    printed = clock.now()

    def tell(line: str) -> None:
        nonlocal printed
        if (clock.now() - printed).total_seconds() >= PROGRESS_SECONDS:
            say(f"  {line}")
            printed = clock.now()

    say("measuring loads")
    if not loads.run(ProcessEngine(), inputs.uri, name, inputs.days, clock.now(), tell, cluster_id).loads:
        raise Terminal(f"nothing to plan by: {loads.NO_SAMPLES}")
    say("planning")
    with native_output_on_stderr():
        write_plan(inputs.uri, compute_plan(inputs.uri, name, name, tell))
