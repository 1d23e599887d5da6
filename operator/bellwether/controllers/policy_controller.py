"""Policy controller: reconcile one policy in its own thread, on changes and at the latest after a poll interval.

Fed by ``policy_manager`` with the policy's objects; a changed signal wakes it at once, metadata is polled. It acts only
while it holds the Lease of the policy's Kafka cluster; a process that stands by only tries to get it. What goes wrong
in one policy is said in its status and leaves the others alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import structlog

from bellwether.adapters.kubernetes.api_client import POLICIES, Resource
from bellwether.adapters.kubernetes.kafka_cluster.broker_pods import PodWatch
from bellwether.adapters.kubernetes.managed_fields import owner_of
from bellwether.adapters.kubernetes.objects.signal_cache import SignalBook
from bellwether.api.v1alpha1.leadershippolicy import LeadershipPolicy
from bellwether.api.v1alpha1.models import InvalidObject
from bellwether.controllers.cluster_connection import Link, Linker, Refused, attended
from bellwether.controllers.credential_rotation import reason_of
from bellwether.controllers.deletion import Parting
from bellwether.controllers.finalizer import Custody
from bellwether.controllers.rebalance_controller import APPROVE, Desk
from bellwether.controllers.reporting.status_reporter import Notices
from bellwether.controllers.requeue import Pace
from bellwether.core.demotion.decisions import Decide, decide
from bellwether.core.model.condition import Condition
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.reasons import SENTENCES, Reason
from bellwether.core.rebalance.lifecycle import Run
from bellwether.core.rebalance.waves import Agenda
from bellwether.core.reporting.report import Report
from bellwether.core.settings.detection import Detection
from bellwether.core.settings.rebalance import Approval
from bellwether.gather import Memory
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Fenced, Terminal, Transient, WrongCluster
from bellwether.reconcile import NOTHING, turn
from bellwether.telemetry.heartbeat import STUCK_SECONDS, Pulse

log = structlog.get_logger(__name__)


MakeDesk = Callable[[Run, Callable[[], None]], Desk]
"""From how the rebalance was last said to stand, and a way to wake the loop."""


class PolicyLoop(threading.Thread):
    """Runs one policy until it is told to stop or the policy is gone."""

    def __init__(
        self,
        body: dict[str, Any],
        linker: Callable[[SignalBook], Linker],
        notices: Notices,
        custody: Custody,
        clock: Clock,
        pace: Pace | None = None,
        desk: MakeDesk | None = None,
    ) -> None:
        metadata = body["metadata"]
        self.namespace, self.policy_name = metadata["namespace"], metadata["name"]
        super().__init__(name=f"policy-{self.namespace}-{self.policy_name}", daemon=True)
        self.signals = SignalBook(clock)
        self._linker = linker(self.signals)
        self._notices = notices
        self._custody = custody
        self._clock = clock
        self._pulse = Pulse(f"the loop of policy {self.namespace}/{self.policy_name}", clock.monotonic)
        self._ended = False
        self._refusal: Reason | None = None
        self._refusals = 0
        self._pace = pace or Pace()
        self._lock = threading.Lock()
        self._body = body
        self._news = threading.Event()
        self._halt = threading.Event()
        self._overwritten = threading.Event()
        self._link: Link | None = None
        self._linked_spec: object = None
        self._memory: Memory | None = None
        self._heard: object = None
        self._seen: object = None
        self._problems: tuple[str, ...] = ()
        self._took_seconds = 0.0
        self._detection = Detection()
        self._make_desk = desk
        self._desk: Desk | None = None
        self._pods: PodWatch | None = None

    def update(self, body: dict[str, Any]) -> None:
        """The policy's object as last seen; a changed spec or a deletion is news."""
        with self._lock:
            before, self._body = self._body["metadata"], body
        after = body["metadata"]
        if any(before.get(k) != after.get(k) for k in ("generation", "deletionTimestamp", "annotations")):
            self._news.set()
        self.compare(POLICIES, body)

    def compare(self, resource: Resource, body: dict[str, Any]) -> None:
        """Take a turn, to say it again, if somebody else has written over what was said of this object.

        Only who leads insists: of two that do not, each would find the other's words written over its own.
        """
        link = self._link
        if link is None or link.lease.seconds_left() <= 0:
            return
        if self._notices.overwritten(resource, body):
            self._overwritten.set()
            self._news.set()

    def wake(self) -> None:
        """A signal or an override may have changed: look at once."""
        self._news.set()

    def halt(self) -> None:
        """End after the turn under way; the Lease is given up, so that another process need not wait."""
        self._halt.set()
        self._news.set()

    def amiss(self, bound_seconds: float = STUCK_SECONDS) -> list[str]:
        """What only a new process can cure: a turn that stands still, a thread that died. Waits for nobody."""
        if self._ended or self.ident is None:
            return []
        if not self.is_alive():
            return [f"{self._pulse.what} has died"]
        link, desk = self._link, self._desk
        found = (
            self._pulse.amiss(bound_seconds),
            link.lease.amiss(bound_seconds) if link is not None else None,
            desk.amiss() if desk is not None else None,
        )
        return [one for one in found if one is not None]

    def run(self) -> None:
        """Turns until halted or done."""
        structlog.contextvars.bind_contextvars(policy=f"{self.namespace}/{self.policy_name}")
        pause = 0.0
        while pause >= 0:
            try:
                if self._wait(pause):
                    break
                pause = self._step()
            except Exception:
                # A defect in one policy's turn must neither end its loop in silence nor touch the others.
                log.exception("the turn failed in a way that it should not")
                self._notices.failed(self.namespace, self.policy_name, "Defect")
                self._forget()
                pause = self._pace.retry_seconds
        self._unlink()
        self._linker.close()
        self._ended = True
        log.info("the policy's loop has ended")

    def _step(self) -> float:
        """One turn with everything around it; returns how long to wait for the next, negative when there is none."""
        self._pulse.beat()
        with self._lock:
            body = self._body
        parting = Parting.of(body, self._custody, self._clock)
        if parting is not None and parting.over:
            self._forget()
            if parting.asked is not None:
                self._notices.trouble(body, Reason.WITHDRAWN, f"{SENTENCES[Reason.WITHDRAWN]} ({parting.asked})")
            return parting.rest()
        try:
            policy = LeadershipPolicy.read(body)
        except InvalidObject as error:
            if parting is not None:
                return parting.finish(f"the policy cannot be understood: {error}")
            self._notices.trouble(body, Reason.INVALID_POLICY, str(error))
            return self._pace.idle_seconds
        self._detection = policy.policy().detection
        try:
            if parting is not None:
                self._close_desk()
                return parting.step(self, policy)
            self.ensure_linked(policy)
            self._custody.adopt(body)
            report = self.take_turn(policy, agenda=self._agenda(policy))
            if self._refusal is not None:
                log.info("turns are taken again", after=str(self._refusal))
                self._refusal, self._refusals = None, 0
            return self._next(policy, report)
        except Refused as error:
            return self._refused(policy, error.reason, error)
        except Fenced as error:
            log.warning("stopped acting", why=str(error))
            self._notices.failed(self.namespace, self.policy_name, "Fenced")
            self._forget()
            return 0.0
        except WrongCluster as error:
            self._forget()
            return self._refused(policy, Reason.CLUSTER_CHANGED, error)
        except Transient as error:
            reason = Reason.CLUSTER_UNREACHABLE if self._link is None else Reason.NO_ANSWER
            return self._refused(policy, reason, error)
        except Terminal as error:
            cause = self._renew(policy) or error
            return self._refused(policy, reason_of(cause), cause)

    def take_turn(self, policy: LeadershipPolicy, decide: Decide = decide, agenda: Agenda = NOTHING) -> Report:
        """One turn of the cycle with its report written. Needs a link; raises what the ports raise."""
        link = self._require_link()
        if self._memory is None:
            try:
                record = link.records.take_over(link.cluster_id)
            except (Transient, Terminal) as error:
                raise Refused(Reason.RECORD_UNAVAILABLE, str(error)) from error
            # The watch may not have delivered yet: no override may be overlooked by the first turn.
            healths = self._notices.healths(policy)
            for health in healths:
                self.signals.on_broker_health(health)
            verdicts, flaps = self._notices.last_said(policy, healths)
            grace, orders = self._linker.grace_seconds(link), self._notices.orders(healths)
            self._memory = Memory(record, verdicts, grace, flaps=flaps, confinements=orders)
            structlog.contextvars.bind_contextvars(epoch=record.epoch)
            log.info("took over", displaced=len(record.entries), demoted=sorted(record.demoted))
        else:
            link.records.check()  # a turn that writes nothing would never hear of a record that a person imported

        def must_lead() -> None:
            self._pulse.beat()
            if link.lease.seconds_left() <= 0:
                raise Fenced("the Lease ran out during the turn: whoever holds it now says how things stand")

        before = self._memory
        self._pods = self._linker.restarts(policy)
        heard = self._fingerprint()  # before the turn reads the signals: what comes during it is news afterwards
        generations = self.signals.generations()  # before the turn as well: what is judged is never older
        began = self._clock.monotonic()
        self._notices.begins(self.namespace, self.policy_name)
        world = replace(attended(link.world, self._pulse.beat), pods=self._pods.seen)
        try:
            report, self._memory = turn(world, policy.policy(), before, decide, agenda)
            must_lead()
        finally:
            self._notices.ends(self.namespace, self.policy_name)
        self._took_seconds = seconds = self._clock.monotonic() - began
        if self._desk is not None:
            self._desk.hear(policy, policy.metadata.annotations, report)
        run = self._desk.run if self._desk is not None else None
        report = replace(report, problem=None)  # it may be large, and was handed on
        former = self._linker.former_credentials
        if former is not None:
            report = replace(report, conditions=(*report.conditions, former))
        if self._pods.problem:
            unseen = Condition("RestartsWatched", False, Reason.PODS_UNKNOWN, self._pods.problem[:1024])
            report = replace(report, conditions=(*report.conditions, unseen))
        self._notices.publish(policy, report, self._memory, seconds, generations, run, must_lead)
        signals = self.signals.signals()
        self._notices.heard(self.namespace, self.policy_name, signals, self._detection.patience)
        self._heard = heard
        self._name_problems()
        return report

    def _agenda(self, policy: LeadershipPolicy) -> Agenda:
        """What the next turn is to do for a rebalance: nothing, where the policy asks for none."""
        if policy.spec.rebalance is None:
            self._close_desk()
        elif self._desk is None and self._make_desk is not None:
            # Somebody else may have said more since this object was delivered.
            self._desk = self._make_desk(self._notices.run_of(policy), self._news.set)
        if self._desk is None:
            return NOTHING
        return replace(self._desk.agenda(), approved_by=self._approver(policy))

    def _approver(self, policy: LeadershipPolicy) -> str:
        """By whose word a load plan is applied, for the audit trail."""
        with self._lock:
            body = self._body
        owner = owner_of(body, "metadata", "annotations", APPROVE)
        automatic = policy.spec.rebalance is not None and policy.spec.rebalance.approval is Approval.AUTOMATIC
        return "the policy (spec.rebalance.approval)" if automatic else owner or f"annotation {APPROVE}"

    def _close_desk(self) -> None:
        desk, self._desk = self._desk, None
        if desk is not None:
            desk.close()

    def _name_problems(self) -> None:
        problems = self.signals.problems()
        if problems != self._problems:
            self._problems = problems
            for problem in problems:
                log.warning("passed over", what=problem)

    @property
    def record(self) -> UndoRecord | None:
        """The undo record as this process knows it; None while it does not."""
        return None if self._memory is None else self._memory.record

    def ensure_linked(self, policy: LeadershipPolicy) -> None:
        """A link with a held Lease. Raises Refused while another process, or another policy, has it."""
        if self._link is not None and self._linked_spec != policy.spec.kafka:
            self._forget()
        if self._link is None:
            self._link = self._linker.link(policy)
            self._linked_spec = policy.spec.kafka
        else:
            self._link = self._linker.follow(self._link, policy)
        if self._link.lease.seconds_left() > 0:
            return
        self._memory = None
        if not self._link.lease.acquire():
            self._notices.leading(self.namespace, self.policy_name, False)
            owner = self._link.lease.owner
            # Nobody seen means that another process was quicker in this very moment: the next try tells who.
            if owner is None or owner.startswith(f"policy {self.namespace}/{self.policy_name} "):
                raise Refused(Reason.STANDING_BY, SENTENCES[Reason.STANDING_BY])
            text = (
                f"{owner} already manages Kafka cluster {self._link.cluster_id}: one policy per Kafka cluster; delete "
                "one of the two"
            )
            raise Refused(Reason.CLUSTER_CLAIMED, text)
        self._notices.leading(self.namespace, self.policy_name, True)

    def _next(self, policy: LeadershipPolicy, report: Report) -> float:
        """How long the loop may wait when no news comes."""
        if self._memory is None:
            return 0.0
        return self._pace.after(report, policy.policy(), self._memory.record, self._took_seconds)

    def _refused(self, policy: LeadershipPolicy, reason: Reason, error: BellwetherError) -> float:
        if reason is Reason.STANDING_BY:
            return self._pace.lease_retry_seconds  # the process that leads writes the status
        log.warning("no turn", reason=str(reason), why=str(error))
        self._refusals = self._refusals + 1 if self._refusal is reason else 1
        self._refusal = reason
        self._notices.failed(self.namespace, self.policy_name, type(error).__name__)
        holds = self._link is not None and self._link.lease.seconds_left() > 0
        if not holds and self._linker.led_elsewhere(policy):
            return self._pace.retry_seconds  # this process stands by: its own trouble is not the policy's
        with self._lock:
            body = self._body
        self._notices.trouble(body, reason, str(error))
        return self._pace.retry(reason, self._refusals)

    def _wait(self, seconds: float) -> bool:
        """Wait for news or the time to pass; True when halted. What only renews old news does not end the wait."""
        until = self._clock.monotonic() + seconds
        while not self._halt.is_set():
            self._pulse.beat()
            left = until - self._clock.monotonic()
            if left <= 0:
                break
            if self._news.wait(min(left, self._pace.inbox_seconds)):
                self._news.clear()
                with self._lock:
                    body = self._body
                if self._changed(body) or self._overwritten.is_set():
                    self._overwritten.clear()
                    break
            elif self._heard is not None and self._heard != self._fingerprint():
                break  # evidence has gone stale
        return self._halt.is_set()

    def _changed(self, body: dict[str, Any]) -> bool:
        metadata = body["metadata"]
        seen = (metadata.get("generation"), metadata.get("deletionTimestamp"), str(metadata.get("annotations")))
        changed, self._seen = seen != self._seen, seen
        return changed or self._heard is None or self._heard != self._fingerprint()

    def _fingerprint(self) -> object:
        """What the signals say that the policy judges, without their age: whether each is fresh."""
        now = self._clock.now()
        signals = tuple(
            (replace(s, age_seconds=None), s.age_seconds is not None and s.age_seconds <= patience)
            for s in self.signals.signals()
            if (patience := self._detection.patience(s.type, s.source)) is not None
        )
        overrides = tuple((o, o.active(now)) for o in self.signals.overrides())
        pods = self._pods.look() if self._pods is not None else None
        return signals, overrides, self._desk.version if self._desk is not None else None, pods

    def _renew(self, policy: LeadershipPolicy) -> BellwetherError | None:
        """Connect anew, with whatever the policy's Secrets say by now; returns what was wrong with that."""
        if self._link is not None:
            try:
                self._link = self._linker.renew(self._link, policy)
            except BellwetherError as error:
                return error
        return None

    def _require_link(self) -> Link:
        if self._link is None:
            raise Transient("there is no connection to the Kafka cluster yet")
        return self._link

    def _forget(self) -> None:
        """Drop the link and what was known, and let others have the Lease."""
        structlog.contextvars.unbind_contextvars("epoch")
        self._unlink()
        self._memory = None

    def _unlink(self) -> None:
        self._close_desk()
        link, self._link = self._link, None
        if link is not None:
            link.lease.release()
            self._notices.leading(self.namespace, self.policy_name, False)
