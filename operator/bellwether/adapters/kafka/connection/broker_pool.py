"""Broker pool: choose the broker that is asked, and ask it on a connection of our own. Used by ``metadata_reader`` and
``leader_mover``.

Clients of Kafka send admin requests to "the controller", under KRaft a random broker, perhaps the sick one, and go on
retrying by themselves. Here every question goes to a broker that we choose, once, with a hard time limit. Only what
surely was not sent is tried elsewhere, unless it is a mere read. Requests that follow one another closely, as those of
a batch do, share a connection.
"""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection, Observe
from bellwether.adapters.kafka.connection.connection_errors import BrokerConnectionError, from_attempts
from bellwether.adapters.kafka.connection.response_decoding import LARGE_LIMIT, LARGEST_LIMIT
from bellwether.adapters.kafka.connection.transport import READ_RATE, Deadline
from bellwether.core.model.cluster import Broker
from bellwether.kafka_connection import Connection, join_address
from bellwether.ports.errors import NotSent, Transient

T = TypeVar("T")

_SHUN_SECONDS = 30.0
KEPT_SECONDS = 0.5
"""How long after an answer its connection is used again. Later the broker may have frozen, which opening one shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Hard limits in seconds.

    ``opening_seconds`` to open one conversation, ``finding_seconds`` to find a broker that takes a mutation,
    ``request_seconds`` for the answers of one broker, ``read_seconds`` for a read with all its second choices,
    ``next_seconds`` for one that goes round: a frozen broker must not delay a reconcile, ``proof_seconds`` for the
    first proof that metadata is whole. The time of a read grows with the bytes that arrive, up to ``metadata_bytes``;
    that of a mutation never does.
    """

    opening_seconds: float = 1.5
    finding_seconds: float = 2.0
    request_seconds: float = 2.0
    read_seconds: float = 5.0
    next_seconds: float = 0.5
    proof_seconds: float = 1.0
    metadata_bytes: int = LARGE_LIMIT

    @property
    def mutation_seconds(self) -> float:
        """The longest that a mutation takes: finding a broker that answers, and the request."""
        return self.finding_seconds + self.request_seconds

    @property
    def longest_read_seconds(self) -> float:
        """The longest that a read takes: two brokers that each send the largest answer, and second choices."""
        return self.read_seconds + 2 * (self.request_seconds + self.metadata_bytes / READ_RATE)


MANUAL_LIMITS = Limits(metadata_bytes=LARGEST_LIMIT, proof_seconds=30.0)
"""Limits of commands: the cluster is the one that the person named, and there may be no second read."""


class BrokerPool:
    """The brokers of one cluster as places to ask. Shared by the reader and the mover of one policy."""

    def __init__(
        self,
        connection: Connection,
        limits: Limits | None = None,
        observe: Observe | None = None,
        certified: Callable[[float], None] | None = None,
    ) -> None:
        """``observe`` is called for every request, and for every opened connection as the request ``Open``.

        ``certified`` receives the earliest expiry of the brokers' certificates seen (Unix time).
        """
        self._observe = observe or (lambda _request, _outcome, _seconds: None)
        self._certified = certified or (lambda _ends: None)
        self._ends: dict[str, float] = {}
        self.connection = connection
        self.limits = limits or Limits()
        self._known: dict[int, str] = {}
        self.avoided: frozenset[int] = frozenset()
        """Brokers to use only when no other answers."""
        self._failed_at: dict[str, float] = {}
        self._answered: str | None = None
        self._kept: deque[tuple[float, BrokerConnection]] = deque()
        """The connection that answered last, and when."""
        weakref.finalize(self, _close_all, self._kept)
        self._asked_next: str | None = None

    def learn(self, brokers: Iterable[Broker]) -> None:
        """Remember the addresses of the brokers that metadata names; those that it no longer names are forgotten."""
        known = {b.id: join_address(b.host, b.port) for b in brokers if b.host and b.port > 0 and not b.fenced}
        if known:
            self._known = known
            still = {*known.values(), *self.connection.bootstrap}
            ends = list(self._ends.items())  # other threads may add to it
            self._ends = {address: end for address, end in ends if address in still}

    def avoid(self, brokers: Collection[int]) -> None:
        """Use these brokers only when no other answers. Replaces the previous set."""
        self.avoided = frozenset(brokers)

    def addresses(self) -> tuple[str, ...]:
        """Whom to ask, in order: brokers that may be asked, bootstrap addresses, those to avoid.

        Within each group those that lately failed come last, and the one that answered last comes first.
        """
        avoided = {address for broker, address in self._known.items() if broker in self.avoided}
        known = [address for address in self._known.values() if address not in avoided]
        bootstrap = [a for a in self.connection.bootstrap if a not in avoided and a not in known]
        # A bootstrap address can belong to an avoided broker, so known addresses come first while there is one.
        groups = (known, bootstrap, sorted(avoided)) if self.avoided else (known + bootstrap, sorted(avoided))
        return tuple(dict.fromkeys(address for group in groups for address in sorted(group, key=self._rank)))

    def first_choice(self) -> tuple[int, str] | None:
        """The broker that is asked first, and its address; None while no id is known."""
        ids = {address: broker for broker, address in self._known.items()}
        return next(((ids[address], address) for address in self.addresses() if address in ids), None)

    def read(self, ask: Callable[[BrokerConnection, Deadline], T]) -> T:
        """The answer of the first broker that gives one before the limit of a read; Transient or Terminal otherwise."""
        deadline = Deadline(self.limits.read_seconds, grows=True)
        attempts: list[BrokerConnectionError] = []
        for address in _until(deadline, self.addresses()):
            try:
                with self._kept_after(self._connect(address, deadline.within(self.limits.opening_seconds))) as dialogue:
                    answer = ask(dialogue, deadline.within(self.limits.request_seconds))
            except BrokerConnectionError as broken:
                self._failed(address, broken, attempts)
            except Transient:
                self._shun(address)  # it answers, and not with what was asked for: the next read asks another one first
                raise
            else:
                self._succeeded(address)
                return answer
        raise from_attempts(attempts, proven=self._answered is not None)

    def read_next(self, ask: Callable[[BrokerConnection, Deadline], T | None]) -> T | None:
        """The answer of the broker after the one that was asked last, so that reads are spread over all of them.

        It answers first from now on. None if there is no other broker, if it has no answer, or if ``ask`` returns None:
        then the one that answered last still does.
        """
        usable = [a for broker, a in self._known.items() if broker not in self.avoided and not self._failed_lately(a)]
        if len(usable) < 2 or self._answered is None:
            return None
        last = self._asked_next or self._answered
        address = usable[(usable.index(last) + 1) % len(usable)] if last in usable else usable[0]
        self._asked_next = address
        try:
            limit = Deadline(self.limits.next_seconds, grows=True)
            with self._open(address, limit) as dialogue:
                answer = ask(dialogue, limit)
        except (BrokerConnectionError, Transient):
            self._shun(address)
            return None
        if answer is not None:
            self._succeeded(address)
        return answer

    def look_at(self, broker: int, ask: Callable[[BrokerConnection, Deadline], T], seconds: float) -> T:
        """The answer of that very broker in so many seconds after the connection was opened; Transient without one.

        A mere look: no broker is shunned for it, and one that failed within the last ``_SHUN_SECONDS`` is not asked.
        Safe in several threads.
        """
        address = self._known.get(broker, "")
        if not address or self._failed_lately(address):
            raise Transient(f"broker {broker} gave no answer lately")
        try:
            with self._open(address, Deadline(self.limits.opening_seconds)) as dialogue:
                return ask(dialogue, Deadline(seconds))
        except BrokerConnectionError as broken:
            raise Transient(str(broken)) from broken

    def address_of(self, broker: int) -> str | None:
        """A broker's address from metadata; None if unknown."""
        return self._known.get(broker)

    def read_from(self, broker: int, ask: Callable[[BrokerConnection, Deadline], T], deadline: Deadline) -> T:
        """The answer of that very broker, before the deadline and the limit of a request; Transient without one."""
        address = self._known.get(broker)
        if address is None:
            raise Transient(f"the address of broker {broker} is unknown: no metadata read has returned it yet")
        limit = deadline.within(self.limits.request_seconds)
        try:
            with self._kept_after(self._connect(address, limit.within(self.limits.opening_seconds))) as dialogue:
                return ask(dialogue, limit)
        except BrokerConnectionError as broken:
            self._shun(address)
            raise Transient(str(broken)) from broken

    def send_once(self, ask: Callable[[BrokerConnection, Deadline], T], deadline: Deadline | None = None) -> T:
        """Ask one broker, once, before the deadline; another is tried only while nothing has been sent.

        Raises NotSent when none could be reached, and any other Transient when the answer did not come in time: what
        was asked may be carried out, even later.
        """
        return self._send(self.addresses(), ask, deadline)

    def send_to(
        self, broker: int, ask: Callable[[BrokerConnection, Deadline], T], deadline: Deadline | None = None
    ) -> T:
        """Ask that very broker, once. Raises as ``send_once``."""
        address = self._known.get(broker)
        if address is None:
            raise NotSent(f"the address of broker {broker} is unknown: no metadata read has returned it yet")
        return self._send((address,), ask, deadline)

    def _send(
        self, addresses: Iterable[str], ask: Callable[[BrokerConnection, Deadline], T], deadline: Deadline | None
    ) -> T:
        deadline = deadline or Deadline(self.limits.mutation_seconds)
        finding = deadline.within(self.limits.finding_seconds)
        attempts: list[BrokerConnectionError] = []
        for address in _until(finding, addresses):
            try:
                # Half of the time at most, so that a frozen first choice leaves a second one its chance.
                opening = min(self.limits.opening_seconds, self.limits.finding_seconds / 2)
                dialogue = self._connect(address, finding.within(opening))
            except BrokerConnectionError as broken:
                self._failed(address, broken, attempts)
                continue
            # This process was paused since, or the Lease took long to read: an answer could hardly come in time.
            if deadline.left < self.limits.request_seconds / 2:
                dialogue.close()
                break
            try:
                with self._kept_after(dialogue):
                    answer = ask(dialogue, deadline.within(self.limits.request_seconds))
            except BrokerConnectionError as broken:
                self._failed(address, broken, attempts)
                raise Transient(f"{broken}; the request was sent and may have been carried out") from broken
            self._succeeded(address)
            return answer
        error = from_attempts(attempts, proven=self._answered is not None)
        raise NotSent(str(error)) if isinstance(error, Transient) else error

    def _connect(self, address: str, deadline: Deadline) -> BrokerConnection:
        """The connection of the last answer, if that came from this broker just now, else a new one."""
        with suppress(IndexError):  # another thread may have taken it
            answered_at, dialogue = self._kept.pop()
            if dialogue.address == address and time.monotonic() - answered_at < KEPT_SECONDS:
                return dialogue
            dialogue.close()
        return self._open(address, deadline)

    @contextmanager
    def _kept_after(self, dialogue: BrokerConnection) -> Iterator[BrokerConnection]:
        """Keep it for the next request if this one is answered, and close it otherwise."""
        try:
            yield dialogue
        except BaseException:
            dialogue.close()
            raise
        _close_all(self._kept)
        self._kept.append((time.monotonic(), dialogue))

    def _open(self, address: str, deadline: Deadline) -> BrokerConnection:
        began, outcome = time.monotonic(), "ok"
        try:
            dialogue = BrokerConnection.open(address, self.connection, deadline)
        except BrokerConnectionError as broken:
            outcome = broken.outcome
            raise
        finally:
            self._observe("Open", outcome, time.monotonic() - began)
        dialogue.observe, dialogue.large_limit = self._observe, self.limits.metadata_bytes
        if (ends := dialogue.certificate_ends) is not None:
            self._ends[address] = ends
            self._certified(min(self._ends.values()))
        return dialogue

    def _failed(self, address: str, broken: BrokerConnectionError, attempts: list[BrokerConnectionError]) -> None:
        self._shun(address)
        attempts.append(broken)

    def _shun(self, address: str) -> None:
        now = time.monotonic()
        self._failed_at = {a: at for a, at in self._failed_at.items() if now - at < _SHUN_SECONDS} | {address: now}

    def _succeeded(self, address: str) -> None:
        self._failed_at.pop(address, None)
        self._answered = address

    def _rank(self, address: str) -> tuple[bool, bool]:
        return self._failed_lately(address), address != self._answered

    def _failed_lately(self, address: str) -> bool:
        return time.monotonic() - self._failed_at.get(address, float("-inf")) < _SHUN_SECONDS


def _close_all(kept: deque[tuple[float, BrokerConnection]]) -> None:
    with suppress(IndexError):
        while True:
            kept.pop()[1].close()


def _until(deadline: Deadline, addresses: Iterable[str]) -> Iterator[str]:
    for address in addresses:
        if deadline.left <= 0:
            return
        yield address
