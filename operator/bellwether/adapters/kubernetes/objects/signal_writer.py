"""Write a prober's signals: its own Lease, and its own entries in ``BrokerHealth.status.signals``.

In: confirmed readings of a prober. Out: one list-map entry per broker and source by server-side apply, only on changes;
freshness is the renewal of the Lease, not of the entry. Most probers have one source; one with several (rules, alerts)
holds one Lease for all of them, as does one with several signal types. Each type and source is a field manager of its
own, so that its entries are written and removed independently. Called by ``bellwether probe ...``.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, KubernetesClient, Object
from bellwether.adapters.kubernetes.api_errors import Conflict, NotFound
from bellwether.adapters.kubernetes.leases import HeldLease, annotation, micro_time
from bellwether.api.v1alpha1.status.signal_entries import entry_of, read_entries
from bellwether.core.signals import Signal
from bellwether.foreign_text import quoted
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Transient

SOURCE_ANNOTATION = "bellwether.dev/source"
TYPE_ANNOTATION = "bellwether.dev/signal-type"
MEASURED_ANNOTATION = "bellwether.dev/measured"
CLAIM_ANNOTATION = "bellwether.dev/also-claimed-by"
_SINCE = ", at "
_SHOWN = 160
"""Characters of what another prober says of itself: a signal's message has 512."""


class ProberLease(HeldLease):
    """One prober's Lease, named by its signal type and source. One of several replicas holds it, the others wait.

    Call ``beat`` after each finished round: a prober whose rounds hang must not look fresh, so the Lease is not renewed
    without a beat within ``duration_seconds``.

    ``measured`` says what the prober measures, if that is one thing of one broker. Two probers of one source that
    measure different things are no replicas: who finds the Lease held, and renewed, for another thing leaves a claim on
    it, again and again, so that each knows its ``rival``.
    """

    def __init__(
        self,
        api: KubernetesClient,
        namespace: str,
        policy: str,
        signal_type: str,
        source: str,
        clock: Clock,
        *,
        duration_seconds: int = 10,
        renew_seconds: float = 2.0,
        uid: str | None = None,
        measured: str = "",
    ) -> None:
        super().__init__(
            api,
            namespace,
            object_names.prober_lease(policy, str(signal_type), source),
            f"{namespace}/{policy}",
            clock,
            duration_seconds=duration_seconds,
            renew_seconds=renew_seconds,
            holder=uid,
            annotations={
                TYPE_ANNOTATION: str(signal_type),
                SOURCE_ANNOTATION: source,
                **({MEASURED_ANNOTATION: measured} if measured else {}),
            },
            labels={object_names.PROBER_LABEL: "true", object_names.POLICY_LABEL: object_names.legal(policy)},
        )
        self._beaten = clock.monotonic()
        self._measured = measured
        self._claimed_at = float("-inf")
        self._heard: tuple[str, str] | None = None
        self._rival = "", float("-inf")

    @property
    def rival(self) -> str:
        """What another prober measures that has, or wants, this source now; empty without such a prober."""
        with self._state:
            what, at = self._rival
        return what if self._clock.monotonic() - at <= self._duration else ""

    def _free(self, found: Object, now: float) -> bool:
        free = super()._free(found, now)
        if not free:
            spec = found["spec"]
            self._hear(annotation(found, MEASURED_ANNOTATION), f"{spec.get('holderIdentity')} {spec.get('renewTime')}")
            if self.rival and now - self._claimed_at >= 2 * self._renew_every:
                self._claimed_at = now
                self._claim(found)
        return free

    def _hold(self, written: Object, sent: float) -> None:
        if self._held is None:
            self._heard = None
        super()._hold(written, sent)
        what, _, sign = annotation(written, CLAIM_ANNOTATION).rpartition(_SINCE)
        self._hear(what, sign)

    def _hear(self, what: str, sign: str) -> None:
        """Another prober's sign: the first that is read may be a dead one's, and only a change shows that it lives."""
        before, self._heard = self._heard, (what, sign)
        if before not in (None, self._heard) and self._measured and what not in ("", self._measured):
            shown = quoted(what, _SHOWN)
            with self._state:
                self._rival = shown, self._clock.monotonic()

    def _claim(self, found: Object) -> None:
        metadata = dict(found["metadata"])
        metadata.pop("managedFields", None)
        claim = f"{self._measured}{_SINCE}{micro_time(self._clock.now())}"
        metadata["annotations"] = {**metadata["annotations"], CLAIM_ANNOTATION: claim}
        with suppress(Conflict):  # the holder renewed it in between; soon again
            self._api.replace(LEASES, self.namespace, {**found, "metadata": metadata})

    def beat(self) -> None:
        """Record that a round of probes has ended, whatever its result."""
        self._beaten = self._clock.monotonic()

    def _worth_renewing(self) -> bool:
        return self._clock.monotonic() - self._beaten <= self._duration


class SignalWriter:
    """Writes one prober's entries while it holds ``lease``; safe to use from several threads.

    If ``source`` is None, every signal has its own. The prober decides which signal is a change: one that equals the
    stored entry is not written.
    """

    def __init__(
        self,
        api: KubernetesClient,
        namespace: str,
        policy: str,
        signal_type: str,
        source: str | None,
        lease: ProberLease,
        *,
        further_types: Collection[str] = (),
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._policy = policy
        self._types = tuple(str(one) for one in (signal_type, *further_types))
        self._source = source
        self._lease = lease
        self._lock = threading.Lock()
        self._written: dict[tuple[int, str, str], Signal] = {}
        self._sequence = 0

    def write(self, signal: Signal) -> None:
        """Replace this prober's entry on the signal's broker. Raises Transient while the broker has no BrokerHealth."""
        if signal.type not in self._types or self._source not in (None, signal.source):
            own = f"{', '.join(self._types)}/{self._source or 'any source'}"
            raise ValueError(f"{signal.type}/{signal.source} does not belong to this prober, which is {own}")
        with self._lock:
            if _word(self._written.get(_key(signal))) != _word(signal):
                self._apply(signal)

    def forget(self, broker: int, source: str | None = None) -> None:
        """Remove this prober's entry on a broker, if there is one. ``source`` None means the only source."""
        source = source or self._source
        if source is None:
            raise ValueError("source is required for a prober of several sources")
        with self._lock:
            one = self._api.find(BROKER_HEALTHS, self._namespace, object_names.broker_health(self._policy, broker))
            for type_ in self._types:
                self._written.pop((broker, type_, source), None)
                if one is not None and _entry_of(one, type_, source) is not None:
                    one = self._remove(one, type_, source)

    def check(self, sources: Collection[str] | None = None) -> tuple[int, ...]:
        """Write those of this prober's entries again that were removed by others; returns their brokers. One list
        request.

        With ``sources``, this prober's entries of any other source are removed, including those of an earlier process.
        """
        labels = {object_names.POLICY_LABEL: object_names.legal(self._policy)}
        found = {o["metadata"]["name"]: o for o in self._api.list(BROKER_HEALTHS, self._namespace, labels)}
        again = set()
        with self._lock:
            if sources is not None:
                self._keep(found, sources)
            for (broker, type_, source), signal in tuple(self._written.items()):
                one = found.get(object_names.broker_health(self._policy, broker))
                entry = _entry_of(one, type_, source)
                if one is not None and (entry is None or entry.get("proberUID") != self._lease.holder):
                    self._apply(signal)
                    again.add(broker)
        return tuple(sorted(again))

    def _keep(self, found: dict[str, Object], sources: Collection[str]) -> None:
        for key in [key for key in self._written if key[2] not in sources]:
            del self._written[key]
        for one in found.values():
            left: Object | None = one
            for entry in _entries(one):
                ours = entry.get("type") in self._types and entry.get("leaseName") == self._lease.name
                if ours and entry.get("source") not in sources and left is not None:
                    left = self._remove(left, str(entry["type"]), str(entry["source"]))

    def _remove(self, one: Object, type_: str, source: str) -> Object | None:
        """Remove one entry from an object that was just read; returns the new object, None if it does not exist any
        more.
        """
        name, manager = one["metadata"]["name"], object_names.prober_manager(type_, source)
        # An empty apply to an object without other entries would leave a status of null, which the API rejects.
        alone = set(one["status"]) == {"signals"} and len(_entries(one)) == 1
        version = {"resourceVersion": one["metadata"]["resourceVersion"]}
        try:
            if alone:
                emptied = {"metadata": version, "status": {"signals": []}}
                return self._api.merge(BROKER_HEALTHS, self._namespace, name, emptied, sub="status")
            return self._api.apply(BROKER_HEALTHS, self._namespace, name, {"status": {}}, manager, sub="status")
        except NotFound:
            return None  # deleted meanwhile, with the entry

    def _apply(self, signal: Signal) -> None:
        name, key = object_names.broker_health(self._policy, signal.broker), _key(signal)
        last = self._written.get(key)
        if last is None:
            standing = _entry_of(self._api.find(BROKER_HEALTHS, self._namespace, name), *key[1:])
            signal = self._carry_on(signal, standing)
        elif last.reading is signal.reading:
            signal = replace(signal, since=last.since)
        self._sequence += 1
        entry = entry_of(signal, self._lease.holder, self._sequence, self._lease.name).body()
        manager = object_names.prober_manager(*key[1:])
        try:
            self._api.apply(
                BROKER_HEALTHS, self._namespace, name, {"status": {"signals": [entry]}}, manager, sub="status"
            )
        except NotFound:
            self._written.pop(key, None)
            raise Transient(
                f"brokerhealth {self._namespace}/{name} does not exist yet: the operator creates it"
            ) from None
        self._written[key] = signal

    def _carry_on(self, signal: Signal, entry: Object | None) -> Signal:
        """A restarted prober keeps the since-time of its predecessor while both report the same reading."""
        entries, _ = read_entries([entry] if entry is not None else None)
        if entries and entries[0].reading is signal.reading:
            return replace(signal, since=entries[0].since)
        return signal


def _key(signal: Signal) -> tuple[int, str, str]:
    return signal.broker, str(signal.type), signal.source


def _entry_of(found: Object | None, type_: str, source: str) -> Object | None:
    return next((e for e in _entries(found) if (e.get("type"), e.get("source")) == (type_, source)), None)


def _entries(found: Object | None) -> list[Object]:
    return ((found or {}).get("status") or {}).get("signals") or []


def _word(signal: Signal | None) -> tuple[object, ...] | None:
    return None if signal is None else (signal.reading, signal.control, signal.message, signal.harm)
