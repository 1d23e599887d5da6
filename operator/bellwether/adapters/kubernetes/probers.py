"""A prober's side of the Kubernetes API: its own Lease, and its own entries in ``BrokerHealth.status.signals``.

In: readings, as a prober has confirmed them. Out: one list-map entry per broker by server-side apply under the prober's
own field manager, on news only; freshness is the Lease's renewal, not the entry's. Called by ``bellwether probe ...``.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from bellwether.adapters.kubernetes import names
from bellwether.adapters.kubernetes.client import BROKER_HEALTHS, KubernetesClient, NotFound, Object
from bellwether.adapters.kubernetes.leases import HeldLease
from bellwether.api.v1alpha1.signalentries import entry_of, read_entries
from bellwether.core.signals import Signal, SignalType
from bellwether.ports import Clock, Transient

SOURCE_ANNOTATION = "bellwether.dev/source"
TYPE_ANNOTATION = "bellwether.dev/signal-type"


class ProberLease(HeldLease):
    """The Lease of one vantage's prober. Of several replicas one holds it and writes, the others wait.

    Call ``beat`` after each finished round: a prober whose rounds hang must not look fresh, so without a beat for
    ``duration_seconds`` the Lease is not renewed.
    """

    def __init__(
        self,
        api: KubernetesClient,
        namespace: str,
        policy: str,
        signal_type: SignalType,
        source: str,
        clock: Clock,
        *,
        duration_seconds: int = 10,
        renew_seconds: float = 2.0,
        uid: str | None = None,
    ) -> None:
        super().__init__(
            api,
            namespace,
            names.prober_lease(policy, signal_type.value, source),
            f"{namespace}/{policy}",
            clock,
            duration_seconds=duration_seconds,
            renew_seconds=renew_seconds,
            holder=uid,
            annotations={TYPE_ANNOTATION: signal_type.value, SOURCE_ANNOTATION: source},
            labels={names.PROBER_LABEL: "true", names.POLICY_LABEL: names.legal(policy)},
        )
        self._beaten = clock.monotonic()

    def beat(self) -> None:
        """A round of probes has just ended, whatever it found."""
        self._beaten = self._clock.monotonic()

    def _worth_renewing(self) -> bool:
        return self._clock.monotonic() - self._beaten <= self._duration


class SignalWriter:
    """Writes one prober's entries while it holds ``lease``; safe to use from several threads.

    Which word is news is the prober's to say: a word that says what stands already is not written again.
    """

    def __init__(
        self,
        api: KubernetesClient,
        namespace: str,
        policy: str,
        signal_type: SignalType,
        source: str,
        lease: ProberLease,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._policy = policy
        self._type = signal_type
        self._source = source
        self._lease = lease
        self._manager = names.prober_manager(signal_type.value, source)
        self._lock = threading.Lock()
        self._written: dict[int, Signal] = {}
        self._sequence = 0

    def write(self, signal: Signal) -> None:
        """Replace this prober's entry on the signal's broker; Transient while the broker has no BrokerHealth yet."""
        if (signal.type, signal.source) != (self._type, self._source):
            raise ValueError(f"{signal.type}/{signal.source} is not this prober's: it is {self._type}/{self._source}")
        with self._lock:
            if _word(self._written.get(signal.broker)) != _word(signal):
                self._apply(signal)

    def forget(self, broker: int) -> None:
        """Take this prober's entry on a broker away; a broker that has none is fine."""
        with self._lock:
            self._written.pop(broker, None)
            name = names.broker_health(self._policy, broker)
            if self._entry_of(self._api.find(BROKER_HEALTHS, self._namespace, name)) is None:
                return
            try:
                self._api.apply(BROKER_HEALTHS, self._namespace, name, {"status": {}}, self._manager, sub="status")
            except NotFound:
                return  # it went meanwhile, and the entry with it

    def check(self) -> tuple[int, ...]:
        """Write those of our entries again that somebody removed; returns their brokers. One list request."""
        labels = {names.POLICY_LABEL: names.legal(self._policy)}
        found = {o["metadata"]["name"]: o for o in self._api.list(BROKER_HEALTHS, self._namespace, labels)}
        again = []
        with self._lock:
            for broker, signal in tuple(self._written.items()):
                one = found.get(names.broker_health(self._policy, broker))
                entry = self._entry_of(one)
                if one is not None and (entry is None or entry.get("proberUID") != self._lease.holder):
                    self._apply(signal)
                    again.append(broker)
        return tuple(again)

    def _apply(self, signal: Signal) -> None:
        name = names.broker_health(self._policy, signal.broker)
        last = self._written.get(signal.broker)
        if last is None:
            signal = self._carry_on(signal, self._entry_of(self._api.find(BROKER_HEALTHS, self._namespace, name)))
        elif last.reading is signal.reading:
            signal = replace(signal, since=last.since)
        self._sequence += 1
        entry = entry_of(signal, self._lease.holder, self._sequence, self._lease.name).body()
        try:
            self._api.apply(
                BROKER_HEALTHS, self._namespace, name, {"status": {"signals": [entry]}}, self._manager, sub="status"
            )
        except NotFound:
            self._written.pop(signal.broker, None)
            raise Transient(
                f"brokerhealth {self._namespace}/{name} does not exist yet: the operator makes it"
            ) from None
        self._written[signal.broker] = signal

    def _carry_on(self, signal: Signal, entry: Object | None) -> Signal:
        """A prober that starts again goes on with the since-time of its predecessor while the two agree."""
        entries, _ = read_entries([entry] if entry is not None else None)
        if entries and entries[0].reading is signal.reading:
            return replace(signal, since=entries[0].since)
        return signal

    def _entry_of(self, found: Object | None) -> Object | None:
        entries: list[Object] = ((found or {}).get("status") or {}).get("signals") or []
        return next((e for e in entries if (e.get("type"), e.get("source")) == (self._type.value, self._source)), None)


def _word(signal: Signal | None) -> tuple[str, ...] | None:
    return None if signal is None else (signal.reading, signal.control, signal.message)
