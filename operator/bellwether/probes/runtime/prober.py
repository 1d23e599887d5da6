"""Prober: watch the policy, hold the Lease, report signals, stop cleanly; the same for all kinds of probes.

In: a probe, and a callback for changes of the policy. Out: this prober's signals in the Kubernetes API. Called by the
commands of ``bellwether probe``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Protocol

import structlog

from bellwether.adapters.files.meta_properties import LogDirIdentity, replaced
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES, KubernetesClient
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.adapters.kubernetes.objects.signal_sources import report, with_sources
from bellwether.adapters.kubernetes.objects.signal_writer import ProberLease, SignalWriter
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.signal_source import SignalSource
from bellwether.core.signals import Reading, Signal
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient, Unauthenticated
from bellwether.probes.outbox import Outbox
from bellwether.telemetry.heartbeat import STUCK_SECONDS, Heartbeat
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

POLICY_SECONDS = 10.0
CHECK_SECONDS = 30.0
_TICK_SECONDS = 0.5
# A probe whose threads have been dead for this long does not recover: the process exits and is restarted.
_DEAD_SECONDS = 30.0


class Probe(Protocol):
    """A running measurement."""

    def repeat(self) -> None:
        """Report the present state again."""

    def alive(self) -> bool:
        """Whether it is measuring."""

    def stop(self) -> None:
        """Stop measuring."""


class ProbeDied(RuntimeError):
    """The probe's own threads have stopped, or what it measures is not there any more."""


def read_policy(api: KubernetesClient, namespace: str, policy: str) -> LeadershipPolicy:
    """The policy as it is now. Raises Transient, Terminal, NotFound."""
    return LeadershipPolicy.read(api.get(POLICIES, namespace, policy))


def hosts_of(api: KubernetesClient, namespace: str, policy: str) -> dict[int, tuple[str, ...]] | None:
    """Brokers with a BrokerHealth of this policy, and what they advertise; None if the API cannot be read."""
    try:
        found = api.list(BROKER_HEALTHS, namespace, {object_names.POLICY_LABEL: object_names.legal(policy)})
    except (Transient, Terminal):
        return None
    return {
        int(one["spec"]["brokerId"]): tuple(map(str, (one.get("status") or {}).get("advertisedHosts") or ()))
        for one in found
    }


class Prober:
    """One prober of one policy. Its probe reports with ``post`` and ``forget``.

    With ``many`` every signal has a source of its own, such as the name of a rule; ``source`` is then the
    name of the prober, whose Lease determines the freshness of all its signals. ``further_types`` are signal types that
    it reports in addition to ``signal_type``, which its Lease is named after.

    ``identity`` is what proves the broker of a prober next to one, ``measured`` what it measures, for people. Replicas
    share a source, and one of them reports; while two run that measure different things, each signal is ``Unknown`` and
    names both.
    """

    def __init__(
        self,
        api: KubernetesClient,
        namespace: str,
        policy: str,
        signal_type: str,
        source: str,
        clock: Clock,
        metrics: ProbeMetrics,
        *,
        many: bool = False,
        further_types: Collection[str] = (),
        measured: str = "",
        identity: LogDirIdentity | None = None,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._policy = policy
        self._clock = clock
        self._metrics = metrics
        self._log = structlog.get_logger(__name__).bind(policy=f"{namespace}/{policy}", source=source)
        self._measured, self._identity = measured, identity
        self._lease = ProberLease(api, namespace, policy, signal_type, source, clock, measured=measured)
        self.source = source
        self._writer = SignalWriter(
            api, namespace, policy, signal_type, None if many else source, self._lease, further_types=further_types
        )
        # Each holds the last signal of a source about a broker, so there is one for each type.
        self._outboxes = {
            str(one): Outbox(self._writer, clock, on_result=metrics.reported) for one in (signal_type, *further_types)
        }
        self._leading = False
        self._wanted = False
        self._conflict = self._replaced = ""
        self.policy = (namespace, policy)
        self._sources: frozenset[str] | None = None
        self._check_due = 0.0
        self._said: dict[str, str] = {}
        who = f"of prober {signal_type.lower()}/{source}"
        self._round = Heartbeat(f"the loop {who}", clock.monotonic, begun=False)
        self._beats = Heartbeat(f"the pulse {who}", clock.monotonic, begun=False)
        metrics.health.watch(self.problems)

    def problems(self, bound_seconds: float = STUCK_SECONDS) -> list[str]:
        """Failures that only a restart fixes: a stuck or dead thread. Does not block."""
        found = (
            self._round.unhealthy_reason(bound_seconds),
            self._beats.unhealthy_reason(bound_seconds),
            *(outbox.unhealthy_reason() for outbox in self._outboxes.values()),
            self._lease.unhealthy_reason(bound_seconds),
        )
        return [one for one in found if one is not None]

    def post(self, signal: Signal) -> None:
        """Report a signal; dropped while another replica reports for this source, and once ``verify`` has failed."""
        if self._conflict:
            signal = replace(signal, reading=Reading.UNKNOWN, message=self._conflict, value=None, harm=None)
        if self._leading and not self._replaced:
            self._outboxes[str(signal.type)].post(signal)

    def verify(self) -> None:
        """After a measurement, before it is reported: whether the log directory is still the one that names the broker.

        If not, nothing more is reported, and ``run`` ends. Reads a file of the directory, and may hang with its disk.
        """
        if self._identity is not None:
            self._replaced = self._replaced or replaced(self._identity)

    def forget(self, broker: int, source: str | None = None) -> None:
        """Remove a signal. A prober with ``many`` sources names the source."""
        if self._leading:
            for outbox in self._outboxes.values():
                outbox.forget(broker, source or self.source)

    def keep(self, sources: Collection[str]) -> None:
        """Keep only these of ``many`` sources; signals of all others are removed, also those of an earlier process."""
        wanted = frozenset(sources)
        if wanted != self._sources:
            self._sources, self._check_due = wanted, 0.0

    def leads(self) -> bool:
        """Whether this replica reports for its source, and no other prober does of another broker or directory."""
        return self._leading and not self._conflict

    def hosts(self) -> dict[int, tuple[str, ...]] | None:
        """As ``hosts_of`` this policy."""
        return hosts_of(self._api, self._namespace, self._policy)

    def brokers(self) -> frozenset[int] | None:
        """Brokers with a BrokerHealth of this policy; None if the API cannot be read."""
        found = self.hosts()
        return None if found is None else frozenset(found)

    def with_sources(self, policy: LeadershipPolicy) -> LeadershipPolicy:
        """The policy with the SignalSources that it names. Raises Transient or Terminal."""
        return with_sources(self._api, policy)

    def report_source(self, source: SignalSource, problem: str, used: str = "a prober uses it") -> None:
        """Whether a source can be used, for its status; only by the replica that reports its signals."""
        if self.leads():
            write = partial(report, self._api, source, problem, self._clock, used)
            self._attempt(f"source {source.metadata.name}", write)

    def run(self, probe: Probe, follow: Callable[[LeadershipPolicy | None], bool], stop: threading.Event) -> None:
        """Run until ``stop``. ``follow`` gets the policy (None: deleted) and returns whether to measure.

        Raises ProbeDied.
        """
        for outbox in self._outboxes.values():
            outbox.start()
        pulse = threading.Thread(target=self._beat, args=(probe, stop), name="pulse", daemon=True)
        pulse.start()
        policy_due = self._check_due = lived = self._clock.monotonic()
        try:
            while not stop.is_set():
                self._round.beat()
                if self._replaced:
                    raise ProbeDied(f"{self._replaced}: start again to measure it")
                now = self._clock.monotonic()
                if now >= policy_due:
                    policy_due = now + POLICY_SECONDS
                    self._attempt("policy", lambda: self._follow(follow))
                self._attempt("lease", lambda: self._speak(probe))
                if self._leading and now >= self._check_due:
                    self._check_due = now + CHECK_SECONDS
                    self._attempt("check", self._check)
                if probe.alive() or not self._wanted:
                    lived = now
                elif now - lived > _DEAD_SECONDS:
                    raise ProbeDied("the probe has stopped measuring; see the log above for why")
                stop.wait(_TICK_SECONDS)
        finally:
            self._leading = False
            for outbox in self._outboxes.values():
                outbox.stop()
            self._attempt("release", self._lease.release)
            self._log.info("prober_stopped")

    def _beat(self, probe: Probe, stop: threading.Event) -> None:
        """Allow renewal of the Lease while the probe measures, also while other API requests are slow."""
        while not stop.wait(_TICK_SECONDS):
            self._beats.beat()
            if probe.alive():
                self._lease.beat()

    def _follow(self, follow: Callable[[LeadershipPolicy | None], bool]) -> None:
        try:
            policy = read_policy(self._api, self._namespace, self._policy)
        except NotFound:
            self._wanted = follow(None)
            raise
        self._metrics.policy_read.set(self._clock.now().timestamp())
        self._wanted = follow(policy if self._same_cluster(policy) else None)

    def _same_cluster(self, policy: LeadershipPolicy) -> bool:
        """Whether what is measured belongs to the policy's Kafka cluster, as far as both are known."""
        own, other = self._identity.cluster_id if self._identity else "", policy.status.cluster_id
        if not own or not other or own == other:
            self._said.pop("cluster", None)
            return True
        if self._said.get("cluster") != other:
            self._said["cluster"] = other
            remedy = "set the policy of the cluster that the broker belongs to"
            self._log.error("other_kafka_cluster", measured=self._measured, cluster=own, of_policy=other, remedy=remedy)
        return False

    def _speak(self, probe: Probe) -> None:
        """Hold the Lease while the policy wants signals; on acquiring it report everything once."""
        held = self._lease.seconds_left() > 0
        if not self._wanted and held:
            self._leading = False
            self._lease.release()
            held = False
        elif self._wanted and not held:
            self._leading = False
            held = self._lease.acquire()
            if not held and not self._lease.rival:
                self._log_state("prober_standby", owner=self._lease.owner)
        self._note_rival()
        if held and not self._leading:
            self._log.info("prober_leading", lease=self._lease.name)
            for outbox in self._outboxes.values():
                outbox.clear()
            self._leading = True
            probe.repeat()
        self._metrics.leader.set(held)

    def _note_rival(self) -> None:
        """While another prober has this source and measures something else, it is not known whose the signals are."""
        rival, before = self._lease.rival, self._conflict
        self._conflict = rival and (
            f"two probers have the source {self.source}: one measures {self._measured[:160]}, the other {rival};"
            " stop the one that does not belong here, or give each a source of its own (--source)"
        )
        if self._conflict == before:
            return
        self._log.warning("source_conflict", measured=self._measured, other=rival or "none any more")
        self._leading = False  # what is known is reported again, with the conflict or without it

    def _check(self) -> None:
        again = self._writer.check(self._sources)
        if again:
            self._log.warning("signal_entries_restored", brokers=list(again))

    def _attempt(self, what: str, action: Callable[[], None]) -> None:
        """Run an action; a failure is logged once and does not stop the prober."""
        try:
            action()
        except (Transient, Terminal) as error:
            if self._said.get(what) != str(error):
                self._said[what] = str(error)
                event = "kubernetes_request_failed"
                if isinstance(error, Unauthenticated):
                    event = "kubernetes_authentication_failed"
                self._log.warning(event, operation=what, error=str(error))
        else:
            if self._said.pop(what, None) is not None:
                self._log.info("kubernetes_request_recovered", operation=what)

    def _log_state(self, event: str, **facts: object) -> None:
        """Log a state once, not in every round."""
        if self._said.get("state") != f"{event}{facts}":
            self._said["state"] = f"{event}{facts}"
            self._log.info(event, **facts)
