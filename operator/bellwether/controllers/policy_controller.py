"""Controller of one policy: wait for a change, reconcile, report the result. One thread a policy.

Fed by ``policy_manager`` with the policy's objects; a changed signal wakes it at once, metadata is polled. It acts only
while it holds the Lease of the policy's Kafka cluster; a stand-by process only tries to acquire it. An error of one
policy is reported in its status and leaves the others alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog

from bellwether.adapters.kubernetes.api_client import POLICIES, Resource
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.cluster_connection import Connector, PolicyRefused, connection_error_reason, with_heartbeat
from bellwether.controllers.policy_deletion import PolicyDeletion
from bellwether.controllers.policy_finalizer import PolicyFinalizer
from bellwether.controllers.policy_rebalance import MakeRebalancer, PolicyRebalance
from bellwether.controllers.reporting.status_reporter import StatusReporter
from bellwether.controllers.session import Session
from bellwether.controllers.wakeups import Wakeups
from bellwether.core.demotion.decisions import DecisionFunction, decide
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.reasons import DESCRIPTIONS, Reason
from bellwether.core.reporting.report import Report
from bellwether.core.reporting.requeue import Requeue
from bellwether.core.settings.detection import Detection
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Fenced, RecordUnsaved, Terminal, Transient, WrongCluster
from bellwether.reconcile import NOTHING, reconcile
from bellwether.telemetry.heartbeat import STUCK_SECONDS, Heartbeat

log = structlog.get_logger(__name__)


class PolicyController(threading.Thread):
    """Reconciles one policy until it is stopped or the policy is gone."""

    def __init__(
        self,
        body: dict[str, Any],
        connector: Callable[[SignalCache], Connector],
        reporter: StatusReporter,
        finalizer: PolicyFinalizer,
        clock: Clock,
        requeue: Requeue | None = None,
        rebalancer: MakeRebalancer | None = None,
    ) -> None:
        metadata = body["metadata"]
        self.namespace, self.policy_name = metadata["namespace"], metadata["name"]
        super().__init__(name=f"policy-{self.namespace}-{self.policy_name}", daemon=True)
        self.signals = SignalCache(clock)
        self._reporter = reporter
        self._finalizer = finalizer
        self._clock = clock
        self._requeue = requeue or Requeue()
        self._lock = threading.Lock()
        self._body = body
        self._heartbeat = Heartbeat(f"the loop of policy {self.namespace}/{self.policy_name}", clock.monotonic)
        who = self.namespace, self.policy_name
        self._session = Session(*who, connector(self.signals), self.signals, reporter)
        self._failure: Reason | None = None
        """Why the last reconcile failed; None if it succeeded. ``_failed`` times in a row for that reason."""
        self._failed = 0
        self._wakeups = Wakeups(clock, self._requeue.inbox_seconds, self._inputs, self._heartbeat.beat)
        self._rebalance = PolicyRebalance(rebalancer, reporter.rebalances, self._wakeups.notify)
        self._detection = Detection()
        self._problems: tuple[str, ...] = ()
        self._took_seconds = 0.0
        self._ended = False
        self.given_up = False
        """Whether it was found to be stuck, or dead: it ends as soon as it can, and another one takes its place."""
        self.on_end: Callable[[], None] = lambda: None
        """Called once, at the end of the thread."""

    @property
    def body(self) -> dict[str, Any]:
        """The policy's object as last seen."""
        with self._lock:
            return self._body

    def update(self, body: dict[str, Any]) -> None:
        """The policy's object was seen; a changed spec, a deletion or an annotation wakes the controller."""
        with self._lock:
            before, self._body = self._body["metadata"], body
        if differs(before, body["metadata"]):
            self.wake()
        self.compare(POLICIES, body)

    def compare(self, resource: Resource, body: dict[str, Any]) -> None:
        """Reconcile, to write the status again, if another process has overwritten it.

        Only the leader insists: two that do not lead would overwrite each other for ever.
        """
        if self._session.leads and self._reporter.overwritten(resource, body):
            self._wakeups.reconcile()

    def source_changed(self, name: str) -> None:
        """A SignalSource of the namespace was seen, changed or deleted."""
        named = ((self.body.get("spec") or {}).get("detection") or {}).get("signalSources") or ()
        if name in (ref.get("name") for ref in named):
            self._wakeups.reconcile()

    def rebalance_changed(self) -> None:
        """A LeaderRebalance that names the policy is new, has changed or is gone."""
        self._wakeups.reconcile()

    def wake(self) -> None:
        """A signal or an override may have changed."""
        self._wakeups.notify()

    def request_stop(self) -> None:
        """End after the current batch of moves and release the Lease, so that another process need not wait for it."""
        self._wakeups.stop()

    def problems(self, bound_seconds: float = STUCK_SECONDS) -> list[str]:
        """A reconcile that hangs, a thread that died. Takes no lock."""
        if self._ended or self.ident is None:
            return []
        if not self.is_alive():
            return [f"{self._heartbeat.what} has died"]
        link = self._session.link
        found = (
            self._heartbeat.unhealthy_reason(bound_seconds),
            link.lease.unhealthy_reason(bound_seconds) if link is not None else None,
            self._rebalance.unhealthy_reason(),
        )
        return [one for one in found if one is not None]

    def give_up(self, problem: str, *, deleted: bool = False) -> None:
        """Called by another thread, as this one is stuck or dead: report it, and release the Lease.

        A reconcile that goes on after all is fenced, as after a lost Lease, and then the thread ends. The policy may be
        ``deleted`` meanwhile.
        """
        log.error("reconcile_given_up", namespace=self.namespace, name=self.policy_name, problem=problem)
        self.given_up = True
        self._wakeups.stop()
        if not deleted:
            with suppress(BellwetherError):
                if not self._session.led_elsewhere(LeadershipPolicy.read(self.body)):
                    self._reporter.trouble(self.body, Reason.STUCK, f"{DESCRIPTIONS[Reason.STUCK]} {problem}")
        # After the report: from then on the next holder writes the status.
        link, self._session.link = self._session.link, None
        if link is None:
            return
        try:
            link.lease.release()
        except BellwetherError as error:
            log.warning("lease_not_released", error=str(error))  # it expires
        if not deleted:
            self._reporter.leading(self.namespace, self.policy_name, False)

    def run(self) -> None:
        """Reconcile until stopped or done."""
        structlog.contextvars.bind_contextvars(policy=f"{self.namespace}/{self.policy_name}")
        pause = 0.0
        while pause >= 0:
            try:
                if self.wait(pause):
                    break
                pause = self.step()
            except Exception:
                # A defect met by one policy must neither end its controller silently nor touch other policies.
                log.exception("reconcile_failed_unexpectedly")
                self._reporter.metrics.count_failure(self.namespace, self.policy_name, "Defect")
                self.release()
                pause = self._requeue.jitter(self._requeue.retry_seconds)
        self._rebalance.close()
        self._session.close()
        self._ended = True
        self.on_end()
        log.info("policy_controller_stopped")

    def wait(self, seconds: float) -> bool:
        """Wait for a change or for the time to pass; True when stopped."""
        return self._wakeups.wait(seconds, lambda: self.body)

    def step(self) -> float:
        """One reconcile with everything around it; returns seconds until the next, negative when there is none."""
        self._heartbeat.beat()
        body = self.body
        deletion = PolicyDeletion.of(body, self._finalizer, self._clock, self._session.withdraw)
        if deletion is not None and deletion.over:
            self.release()
            if deletion.asked is not None:
                self._reporter.trouble(
                    body, Reason.UNINSTALLING, f"{DESCRIPTIONS[Reason.UNINSTALLING]} ({deletion.asked})"
                )
            return deletion.rest()
        try:
            policy = LeadershipPolicy.read(body)
        except InvalidObject as error:
            if deletion is not None:
                return deletion.finish(f"the policy is invalid: {error}")
            self._reporter.trouble(body, Reason.INVALID_POLICY, str(error))
            return self._requeue.idle_seconds
        try:
            if deletion is not None:
                self._rebalance.close()
                self._reporter.rebalances_idle(
                    self.namespace, self.policy_name, Reason.REBALANCE_UNUSED, f"{deletion.occasion}: no plan goes on"
                )
                return self._requeue.jitter(deletion.step(self, policy))
            self.ensure_connected(policy)
            self._finalizer.adopt(body)
            policy = self._rebalance.chosen(policy)
            report = self.reconcile(policy, rebalance_input=self._rebalance.rebalance_input(policy))
            if self._failure is not None:
                log.info("reconcile_recovered", previous_reason=str(self._failure))
                self._failure, self._failed = None, 0
            record = self.record
            return (
                self._requeue.after(report, policy.policy(), record, self._took_seconds) if record is not None else 0.0
            )
        except BellwetherError as error:
            # Not _handle: Thread itself has that name from Python 3.13 on.
            return self._requeue.jitter(self._pause_after(policy, error))

    def _pause_after(self, policy: LeadershipPolicy, error: BellwetherError) -> float:
        """Report a failed reconcile by the action that it requires; returns seconds until the next try."""
        match error:
            case PolicyRefused():
                return self._refused(policy, error.reason, error)
            case Fenced():
                log.warning("leadership_lost", error=str(error))
                self._reporter.metrics.count_failure(self.namespace, self.policy_name, "Fenced")
                self.release()
                return 0.0
            case WrongCluster():
                self.release()
                return self._refused(policy, Reason.CLUSTER_CHANGED, error)
            case RecordUnsaved():
                return self._refused(policy, Reason.RECORD_UNAVAILABLE, error)
            case Transient():
                connected = self._session.link is not None
                return self._refused(policy, Reason.NO_ANSWER if connected else Reason.CLUSTER_UNREACHABLE, error)
            case Terminal():
                cause = self._session.reconnect(policy) or error
                return self._refused(policy, connection_error_reason(cause), cause)
        raise error

    def _refused(self, policy: LeadershipPolicy, reason: Reason, error: BellwetherError) -> float:
        if reason is Reason.NOT_LEADER:
            return self._requeue.lease_retry_seconds  # the leader writes the status
        log.warning("reconcile_failed", reason=str(reason), error=str(error))
        self._failed = self._failed + 1 if self._failure is reason else 1
        self._failure = reason
        self._reporter.metrics.count_failure(self.namespace, self.policy_name, type(error).__name__)
        if self._session.led_elsewhere(policy):
            return self._requeue.retry_seconds  # an error of a stand-by process is not the policy's
        self._reporter.trouble(self.body, reason, str(error))
        return self._requeue.retry(reason, self._failed)

    def reconcile(
        self, policy: LeadershipPolicy, decide: DecisionFunction = decide, rebalance_input: RebalanceInput = NOTHING
    ) -> Report:
        """One cycle, with its report written. Needs a connection; raises what the ports raise."""
        policy = self._session.with_sources(policy)
        self._detection = policy.policy().detection
        link, memory, pods = self._session.begin(policy)
        settings = self._session.settings(policy)
        inputs = self._inputs()  # before the signals are read: a change during the cycle wakes the controller again
        generations = self.signals.generations()  # before, too: the status must not claim a newer one than was judged
        began = self._clock.monotonic()
        self._reporter.metrics.begin_reconcile(self.namespace, self.policy_name, self._clock.now().timestamp())
        try:
            world = with_heartbeat(link.world, self._heartbeat.beat)
            world = replace(world, pods=pods.source, stopping=self._wakeups.stopped)
            result = reconcile(world, settings, memory, decide, rebalance_input)
            memory = self._session.remember(link, result.memory, result.report)
            self._must_lead()
        finally:
            self._reporter.metrics.end_reconcile(self.namespace, self.policy_name)
        self._took_seconds = seconds = self._clock.monotonic() - began
        self._rebalance.on_result(policy, result)
        report = self._rebalance.qualified(self._session.qualified(result.report, policy), policy)
        rebalance = self._rebalance.status()
        if self._reporter.publish(policy, report, memory, seconds, generations, rebalance, self._must_lead):
            self._rebalance.on_published(rebalance)
        self._reporter.metrics.export_signal_ages(
            self.namespace, self.policy_name, self.signals.sources(), self._detection.stale_after
        )
        self._wakeups.judged(inputs)
        self._log_problems()
        return report

    @property
    def record(self) -> UndoRecord | None:
        """The undo record as this process knows it; None while it does not."""
        memory = self._session.memory
        return memory.record if memory is not None else None

    def ensure_connected(self, policy: LeadershipPolicy) -> None:
        """Connect and hold the Lease. Raises PolicyRefused while another process, or another policy, holds it."""
        self._session.ensure(policy)

    def release(self) -> None:
        """Release the Lease and forget what was known."""
        self._rebalance.close()
        self._session.end()

    def _must_lead(self) -> None:
        self._heartbeat.beat()
        self._session.must_lead()

    def _inputs(self) -> object:
        """What a reconcile would judge now; of a signal's age only whether it is stale."""
        now = self._clock.now()
        signals = self.signals.judged(self._detection)
        overrides = tuple((o, o.active(now)) for o in self.signals.overrides())
        pods = self._session.pods
        return signals, overrides, self._rebalance.version, pods.look() if pods is not None else None

    def _log_problems(self) -> None:
        problems = self.signals.problems()
        if problems != self._problems:
            self._problems = problems
            for problem in problems:
                log.warning("broker_health_invalid", error=problem)


def differs(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether more than the status of an object has changed, by its metadata."""
    return any(before.get(key) != after.get(key) for key in ("generation", "deletionTimestamp", "annotations"))
