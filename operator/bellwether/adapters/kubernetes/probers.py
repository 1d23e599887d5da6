"""A prober's side of the Kubernetes API: its own Lease, and its own entries in ``BrokerHealth.status.signals``.

In: readings, as a prober has confirmed them. Out: one list-map entry per broker by server-side apply under the prober's
own field manager, on news only; freshness is the Lease's renewal, not the entry's. Called by ``bellwether probe ...``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from bellwether.adapters.kubernetes import names
from bellwether.adapters.kubernetes.client import BROKER_HEALTHS, KubernetesClient, NotFound, Object
from bellwether.adapters.kubernetes.leases import HeldLease
from bellwether.core.signals import Reading, SignalType
from bellwether.ports import Clock

SOURCE_ANNOTATION = "bellwether.dev/source"
TYPE_ANNOTATION = "bellwether.dev/signal-type"
# A message alone is news at most this often: it may carry figures.
_MESSAGE_SECONDS = 60.0
_MESSAGE_LENGTH = 512


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


@dataclass(frozen=True, slots=True)
class Observation:
    """What a prober says of one broker now; ``latency_seconds`` and ``message`` as last measured."""

    broker: int
    reading: Reading
    control: Reading = Reading.UNKNOWN
    message: str = ""
    latency_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class _Written:
    observation: Observation
    since: datetime
    at: float


class SignalWriter:
    """Writes one prober's entries. Not thread-safe: the prober's loop calls it while it holds ``lease``."""

    def __init__(
        self,
        api: KubernetesClient,
        namespace: str,
        policy: str,
        signal_type: SignalType,
        source: str,
        lease: ProberLease,
        clock: Clock,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._policy = policy
        self._type = signal_type
        self._source = source
        self._lease = lease
        self._clock = clock
        self._manager = names.prober_manager(signal_type.value, source)
        self._written: dict[int, _Written] = {}
        self._sequence = 0

    def write(self, observations: Iterable[Observation]) -> tuple[int, ...]:
        """Write those that are news; returns the brokers written.

        A broker without a BrokerHealth is passed over and tried again at the next call. Transient or Terminal leave the
        rest for the next call.
        """
        written = []
        for observation in observations:
            last = self._written.get(observation.broker)
            if last is not None and not self._news(last, observation):
                continue
            if self._apply(observation, last):
                written.append(observation.broker)
        return tuple(written)

    def check(self) -> None:
        """Forget those of our entries that no longer stand, so that the next ``write`` restores them."""
        labels = {names.POLICY_LABEL: names.legal(self._policy)}
        found = {o["metadata"]["name"]: o for o in self._api.list(BROKER_HEALTHS, self._namespace, labels)}
        for broker in tuple(self._written):
            entry = self._entry_of(found.get(names.broker_health(self._policy, broker)))
            if entry is None or entry.get("proberUID") != self._lease.holder:
                del self._written[broker]

    def _news(self, last: _Written, now: Observation) -> bool:
        if (now.reading, now.control) != (last.observation.reading, last.observation.control):
            return True
        return now.message != last.observation.message and self._clock.monotonic() - last.at >= _MESSAGE_SECONDS

    def _apply(self, observation: Observation, last: _Written | None) -> bool:
        name = names.broker_health(self._policy, observation.broker)
        if last is None:
            found = self._api.find(BROKER_HEALTHS, self._namespace, name)
            if found is None:
                return False
            since = self._since(self._entry_of(found), observation)
        elif last.observation.reading is observation.reading:
            since = last.since
        else:
            since = self._clock.now()
        self._sequence += 1
        entry: Object = {
            "type": self._type.value,
            "source": self._source,
            "reading": observation.reading.value,
            "control": observation.control.value,
            "since": since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "message": observation.message[:_MESSAGE_LENGTH],
            "proberUID": self._lease.holder,
            "sequence": self._sequence,
            "leaseName": self._lease.name,
        }
        if observation.latency_seconds is not None:
            entry["latencyMilliseconds"] = round(observation.latency_seconds * 1000)
        try:
            self._api.apply(
                BROKER_HEALTHS, self._namespace, name, {"status": {"signals": [entry]}}, self._manager, sub="status"
            )
        except NotFound:
            self._written.pop(observation.broker, None)
            return False
        self._written[observation.broker] = _Written(observation, since, self._clock.monotonic())
        return True

    def _since(self, entry: Object | None, observation: Observation) -> datetime:
        # A prober that starts again goes on with the since-time of its predecessor while they agree.
        if entry is not None and entry.get("reading") == observation.reading.value:
            try:
                return datetime.fromisoformat(entry["since"])
            except (KeyError, TypeError, ValueError):
                pass
        return self._clock.now()

    def _entry_of(self, found: Object | None) -> Object | None:
        entries: list[Object] = ((found or {}).get("status") or {}).get("signals") or []
        return next((e for e in entries if (e.get("type"), e.get("source")) == (self._type.value, self._source)), None)
