"""Rebalance controller of one policy: runs jobs and store reads in its own thread, so that none delays a reconcile.

The policy controller passes each result to it (``on_result``) and takes from it the input of the next reconcile
(``rebalance_input``). This class keeps the run's state (``rebalance_lifecycle`` decides the next state), starts and
polls jobs, verifies their results, and reads the loads that a capacity limit needs (``load_cache``). It accesses
neither Kafka nor the undo record. Every step is idempotent: names derive from what triggered the run, so a process
that takes over finds the problem, the job and the plan of its predecessor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bellwether.api.v1alpha1.leader_rebalance import APPROVE_ANNOTATION, REQUEST_ANNOTATION
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.rebalance_status import REQUEST_LIMIT, LeaderRebalanceStatus
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.undo_record import PlanApplication
from bellwether.core.reasons import DESCRIPTIONS, Reason
from bellwether.core.settings.rebalance import Rebalance
from bellwether.core.waves.approved_plan import ApprovedPlan, RebalanceInput
from bellwether.core.waves.rebalance_waves import WaveResult
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.ports.rebalance import ProblemSnapshot, RunState
from bellwether_load.api.load_config import NotConfigured
from bellwether_load.controller.job_commands import JobState, PlanJobs, file_name
from bellwether_load.controller.lifecycle import (
    UNDER_WAY,
    Run,
    because,
    become,
    on_judged,
    on_planned,
    on_progress,
    on_started,
    on_superseded,
    run_due,
    with_next_run_time,
)
from bellwether_load.controller.load_cache import LoadCache, LoadQuery
from bellwether_load.page.plan_summary import Story
from bellwether_load.page.plan_text import summary
from bellwether_load.plan.problem_builder import rebalance_problem
from bellwether_load.store.store_errors import PlanUnfit, StoreError

if TYPE_CHECKING:  # Arrow is for policies that rebalance
    from bellwether_load.store.plans.plan_store import FilePlanStore

POLL_SECONDS = 5.0

_NO_INPUT_DIGEST = "status.inputDigest, the digest of the problem that the operator wrote, is missing"

log = structlog.get_logger(__name__)


CheckRebalance = Callable[[LeadershipPolicy], object]
"""Raises NotConfigured if a policy may not use the store or the profile that it names; the result is ignored."""


@dataclass(frozen=True, slots=True)
class RebalanceBackend:
    """What a policy's rebalance controller works with, rebuilt when the policy changes."""

    plans: FilePlanStore
    jobs: PlanJobs


MakeRebalanceBackend = Callable[[LeadershipPolicy, str], RebalanceBackend]
"""From a policy and the id of its Kafka cluster. Raises StoreError or Terminal."""


@dataclass(frozen=True)
class _Facts:
    """The result of the last reconcile, as far as rebalancing needs it."""

    policy: LeadershipPolicy
    settings: Rebalance
    cluster_id: str
    asked: str
    approved: str
    application: PlanApplication | None
    waits: Refusal | None


class RebalanceController:
    """See the module. ``wake`` requests an early reconcile: there is something to do or to report."""

    def __init__(
        self,
        status: LeaderRebalanceStatus,
        check: CheckRebalance,
        tools: MakeRebalanceBackend,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        # The policy's controller adds these two to what it reports.
        self._run = status.model_copy(update={"conditions": (), "observed_generation": None})
        self._published = self._run.input_digest
        self._check = check
        self._make_tools = tools
        self._clock = clock
        self._wake = wake
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._stop_requested = threading.Event()
        self._thread: threading.Thread | None = None
        self._bound: dict[str, object] = {}
        self._facts: _Facts | None = None
        self._accepted: ApprovedPlan | None = None
        self._snapshot: ProblemSnapshot | None = None
        self._wanting = False
        self._started = False
        self._trouble: Refusal | None = None
        self._tools: RebalanceBackend | None = None
        self._tools_for: object = None
        self._reading = LoadCache(clock)
        self.version = 0
        """Changes whenever a reconcile has something new to do or to report."""

    def start(self) -> None:
        """Work on its own from now on; its lines in the log name what the caller's name."""
        self._bound = structlog.contextvars.get_contextvars()
        self._thread = threading.Thread(target=self._work, name="rebalancing", daemon=True)
        self._thread.start()

    def close(self, timeout_seconds: float = 1.0) -> None:
        """End; jobs go on and are found again.

        A recheck under way is not waited for: what it may still do, may be done twice.
        """
        self._stop_requested.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    def unhealthy_reason(self) -> str | None:
        """That its thread has died, if so; how long the work of one step takes is bounded by the work alone."""
        thread = self._thread
        dead = thread is not None and not thread.is_alive() and not self._stop_requested.is_set()
        return "the thread of the policy's rebalances has died" if dead else None

    @property
    def run(self) -> Run:
        """The state of the rebalance, and what blocks it now."""
        with self._lock:
            run, trouble = self._run, self._trouble
        return run if trouble is None else because(run, trouble.reason, trouble.message)

    def rebalance_input(self) -> RebalanceInput:
        """The input of the next reconcile."""
        with self._lock:
            run, plan = self._run, self._accepted
            given = plan if plan is not None and plan.digest == run.digest and run.state in UNDER_WAY else None
            ended = run.digest if run.state is RunState.SUPERSEDED else ""
            return RebalanceInput(given, ended, wants_snapshot=self._wanting, loads=self._reading.known())

    def on_result(
        self, policy: LeadershipPolicy, cluster_id: str, progress: WaveResult | None, snapshot: ProblemSnapshot | None
    ) -> None:
        """What a reconcile came to; the snapshot for a problem if it was wanted."""
        core, used = policy.policy(), policy.rebalance
        settings, annotations = core.rebalance, used.metadata.annotations if used is not None else {}
        self._reading.wanted(settings is not None and core.demotion.capacity.max_load is not None)
        with self._lock:
            if settings is None:
                self._facts = self._accepted = self._trouble = None
                return
            self._facts = _Facts(
                policy,
                settings,
                cluster_id,
                annotations.get(REQUEST_ANNOTATION, "")[:REQUEST_LIMIT],
                annotations.get(APPROVE_ANNOTATION, "").strip(),
                progress.application if progress is not None else None,
                progress.waits if progress is not None else None,
            )
            if snapshot is not None and self._wanting:
                self._snapshot, self._wanting = snapshot, False
            facts = self._facts
            self._run = on_progress(self._run, facts.application, facts.waits, facts.asked)
        self._news.set()

    def status(self) -> LeaderRebalanceStatus:
        """The run, as it is reported."""
        return self.run

    def on_published(self, status: LeaderRebalanceStatus) -> None:
        """This state of the rebalance is in status: a job for its problem may start."""
        if status.input_digest != self._published:
            self._published = status.input_digest
            self._news.set()

    def step(self) -> bool:
        """Do the next step without waiting for jobs; returns whether anything changed."""
        with self._lock:
            facts, had = self._facts, self._shown()
        if facts is None:
            return False
        refused = self._refused(facts)
        with self._lock:
            run = self._run = self._decide(self._run, facts, may_start=refused is None)
        self._read_loads(run, facts)  # before a recheck, which may take long: a limit waits for them
        trouble = refused
        try:
            after = self._do(run, facts) if refused is None else run
        except Transient as error:
            reason = Reason.STORE_UNAVAILABLE if isinstance(error, StoreError) else Reason.PLANNING
            after, trouble = run, Refusal(reason, str(error))
        except Terminal as error:
            after = self._failed(run, error, str(error))
        except Exception as error:
            log.exception("rebalance_failed_unexpectedly")
            after = self._failed(run, error, f"{type(error).__name__}: {error}")
        unread = self._read_loads(after, facts)
        with self._lock:
            if after is not run:
                self._run = after  # a report that arrived meanwhile is handled by the next step
            self._trouble = trouble or unread
            changed = self._shown() != had
            self.version += changed
        if changed:
            log.info("rebalance_state_changed", state=str(after.state), reason=self.run.reason, digest=after.digest)
            self._wake()
        return changed

    def _shown(self) -> object:
        """What changes the result of a reconcile when it changes."""
        plan = self._accepted.digest if self._accepted is not None else ""
        return self._run, self._trouble, self._wanting, plan, self._reading.shown

    def _decide(self, run: Run, facts: _Facts, *, may_start: bool) -> Run:
        """What follows from what is known; nothing is fetched."""
        now = self._clock.now()
        run = with_next_run_time(run, facts.settings, now)
        run = on_progress(run, facts.application, facts.waits, facts.asked)
        run = on_superseded(run, facts.asked)
        run = on_judged(run, facts.settings, facts.approved, now)
        name = run_due(run, facts.asked, now)
        if name is not None and may_start and not self._ending(run, facts):
            run = on_started(run, name, facts.asked, facts.settings, now)
            self._snapshot, self._wanting, self._started, self._accepted = None, False, False, None
        return run

    def _refused(self, facts: _Facts) -> Refusal | None:
        """Why the policy may not use the store or the profile that it names; its run waits and does not fail."""
        try:
            self._check(facts.policy)
        except NotConfigured as error:
            return Refusal(Reason.INVALID_POLICY, str(error))
        return None

    def _do(self, run: Run, facts: _Facts) -> Run:
        """What the run's state asks for."""
        if run.state is RunState.RUNNING:
            return self._plan(run, facts)
        if run.state in UNDER_WAY:
            return self._take_up(run, facts)
        return run

    @staticmethod
    def _ending(run: Run, facts: _Facts) -> bool:
        """Whether the undo record still has the previous plan as active; irrelevant where nothing moves."""
        applied = facts.application
        open_ = applied is not None and applied.ended is None and applied.digest == run.digest
        return run.state is RunState.SUPERSEDED and open_ and facts.policy.policy().acts

    def _plan(self, run: Run, facts: _Facts) -> Run:
        """A run's problem, its job, its plan: whichever is next."""
        tools, metadata = self._tools_of(facts), facts.policy.metadata
        name = file_name(metadata.namespace, metadata.name, run.run)
        if not self._started:
            if not run.input_digest or not tools.plans.has_problem(name):
                with self._lock:
                    snapshot = self._snapshot
                    self._wanting = snapshot is None
                if snapshot is None:
                    return run
                problem = rebalance_problem(snapshot.context, snapshot.demoted, facts.settings)
                run = run.model_copy(update={"input_digest": tools.plans.put_problem(name, problem)})
            with self._lock:
                self._snapshot, self._wanting = None, False
            if run.input_digest != self._published:
                return run  # the job writes to the same store: what it was given must be on record first
            tools.jobs.start(run.run)
            self._started = True
        job = tools.jobs.look(run.run)
        if job is None:
            return become(run, RunState.FAILED, Reason.JOB_FAILED, "the job was deleted before it stored a plan")
        if job.state is JobState.FAILED:
            return become(run, RunState.FAILED, Reason.JOB_FAILED, job.message)
        if job.state is JobState.ACTIVE:
            text = f"{DESCRIPTIONS[Reason.PLANNING]} {job.message}".strip()
            return become(run, RunState.RUNNING, Reason.PLANNING, text)
        rechecked = tools.plans.plan_for(name, run.input_digest)
        most, report = facts.policy.policy().demotion.capacity.max_load, rechecked.report
        said = summary(Story(rechecked.plan).verified(report), facts.settings.waves)
        found = on_planned(run, rechecked.plan, facts.settings, report.forced, said, most)
        tools.plans.tidy(file_name(metadata.namespace, metadata.name, ""))
        return found

    def _take_up(self, run: Run, facts: _Facts) -> Run:
        """Load the approved plan for the reconciles that apply it."""
        if self._accepted is not None and self._accepted.digest == run.digest:
            return run
        if run.state is RunState.APPROVED and not run.applied + run.skipped and not run.input_digest:
            raise PlanUnfit(f"plan {run.digest} cannot be verified: {_NO_INPUT_DIGEST}: request a new plan")
        accepted = self._tools_of(facts).plans.accepted(run.digest, run.input_digest)
        with self._lock:
            self._accepted = accepted
        return run.model_copy(update={"made_at": accepted.made_at})

    def _read_loads(self, run: Run, facts: _Facts) -> Refusal | None:
        """The loads of the run that ended last, where the policy limits by load; why they could not be had, if so."""
        query = LoadQuery.of(facts.policy, facts.settings, run)
        self._reading.refresh(lambda: self._tools_of(facts).plans, query)
        return self._reading.trouble

    def _failed(self, run: Run, error: Exception, text: str) -> Run:
        reason = Reason.JOB_FAILED
        if isinstance(error, PlanUnfit):
            reason = Reason.PLAN_VERIFICATION_FAILED
        elif isinstance(error, StoreError):
            reason = Reason.STORE_UNAVAILABLE
        with self._lock:
            self._wanting, self._snapshot = False, None
        return become(run, RunState.FAILED, reason, text)

    def _tools_of(self, facts: _Facts) -> RebalanceBackend:
        wanted = (facts.policy.rebalance and facts.policy.rebalance.spec, facts.cluster_id)
        if self._tools is None or self._tools_for != wanted:
            self._tools = self._make_tools(facts.policy, facts.cluster_id)
            self._tools_for = wanted
        return self._tools

    def _work(self) -> None:
        structlog.contextvars.bind_contextvars(**self._bound)
        while not self._stop_requested.is_set():
            self._news.wait(POLL_SECONDS)
            self._news.clear()
            while not self._stop_requested.is_set() and self.step():
                pass
