"""Which broker a series, an alert or a pod is about: matched by what proves it, or to no broker.

In: the advertised hosts of each broker, and the names, labels and addresses of things outside Kafka. Out: a ``Match``
for each. Pure. Proof is a name or an address that a broker advertises, and a label that carries the node id; all of
them must agree. A number at the end of a name proves nothing by itself: StatefulSets number their pods from 0,
whatever the node ids are. It counts only while every broker is matched exactly once by it and nothing contradicts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bellwether.core.listing import few
from bellwether.core.model.cluster import Cluster

DEFAULT_LABEL = "broker"
"""Prometheus label with the node id, unless a rule names another one."""

STRIMZI_LABEL = "strimzi_io_pod_name"
STATED_LABELS = (DEFAULT_LABEL, "broker_id")
"""Prometheus labels in which common scrape configurations put a broker's id."""

POD_LABELS = (STRIMZI_LABEL, "kubernetes_pod_name", "pod")
"""Prometheus labels in which common scrape configurations put a broker's pod."""

PLACE_LABELS = ("namespace", "kubernetes_namespace", "instance")
IDENTITY_LABELS = (*STATED_LABELS, *POD_LABELS, *PLACE_LABELS)
"""Every Prometheus label that is read to find the broker."""

Hosts = Mapping[int, Collection[str]]
"""Every broker, and its advertised host names and addresses as far as they are known."""

ADVERTISED_LISTENERS, LISTENERS = "advertised.listeners", "listeners"
"""Settings of a broker that ``advertised_listeners`` reads."""

HOST_LIMIT = 16
"""Hosts that are kept of one broker."""

ADVERTISED_SECONDS, RETRY_SECONDS, READS_AT_ONCE = 3600.0, 300.0, 8
"""Seconds until a broker's settings are read again, until one without an answer is, and how many are asked at once."""

_HOST_LENGTH, _NAMED = 253, 4
_EVERYWHERE = (":", "0.0.0.0:", "[::]:")
_LARGEST_ID, _LONGEST_ID = 2**31 - 1, 10
_REMEDY = "add a label broker with the node id, or allow DescribeConfigs on Cluster to the policy's user"


@dataclass(frozen=True, slots=True)
class Pod:
    """The pod of one broker. ``ready``: the broker's own container is, whatever others; ``leaving``: it is deleted."""

    name: str
    ready: bool = True
    leaving: bool = False


UNMATCHED = Pod("")
"""In the place of a broker's pod that may be one that is matched to no broker: nothing is known of it."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a thing says of its broker. ``text`` names it in messages, and is different for each.

    ``ids`` are stated node ids. ``pods`` are names of the broker's own pod, in ``namespace`` if that is known;
    ``strimzi`` is the name that Strimzi gave it, which ends in the node id. ``hosts`` are other names and addresses,
    with or without a port.
    """

    text: str
    ids: tuple[int, ...] = ()
    pods: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    namespace: str = ""
    strimzi: str = ""

    @property
    def stated_ids(self) -> frozenset[int]:
        """The node ids that its labels carry."""
        strimzi = ordinal(self.strimzi)
        return frozenset(self.ids if strimzi is None else (*self.ids, strimzi))

    @property
    def numbered(self) -> tuple[str, int] | None:
        """The first name that ends in a number, with its namespace, and that number; None without one."""
        found = ((name, number) for name in self.pods if (number := ordinal(name)) is not None)
        return next(((f"{self.namespace}/{name}", number) for name, number in found), None)

    @classmethod
    def of_labels(cls, labels: Mapping[str, str], label: str = DEFAULT_LABEL) -> Named:
        """What Prometheus labels say, of a rule or an alert with that broker label."""
        stated = stated_labels(label)
        ids, hosts = [], []
        for name in stated:
            value = labels.get(name, "")
            number = None if name.endswith(("index", "ordinal")) else node_id(value)
            if number is not None:
                ids.append(number)
            elif value:
                hosts.append(value)
        pods = [labels[name] for name in POD_LABELS if labels.get(name) and name != label]
        shown = next((name for name in (*stated, *POD_LABELS, "instance") if labels.get(name)), "")
        return cls(
            f"{shown}={labels[shown][:80]!r}" if shown else "",
            tuple(ids),
            tuple(dict.fromkeys((*pods, *hosts))),
            (*hosts, labels.get("instance", "")),
            labels.get("namespace") or labels.get("kubernetes_namespace") or "",
            labels.get(STRIMZI_LABEL, ""),
        )


def stated_labels(label: str) -> tuple[str, ...]:
    """The labels that carry a node id, where a rule names ``label``: one other than the default replaces the rest."""
    return STATED_LABELS if label == DEFAULT_LABEL else (label,)


@dataclass(frozen=True, slots=True)
class Match:
    """The broker of a thing, or None and why: ``unknown``, ``conflict`` or ``unmatched``, and a sentence."""

    broker: int | None
    kind: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Matches:
    """A match for each thing, in their order; ``settled`` are names that were matched while every broker was."""

    of: tuple[Match, ...]
    settled: Mapping[str, int] = field(default_factory=dict)


def match(things: Sequence[Named], hosts: Hosts, settled: Mapping[str, int] | None = None) -> Matches:
    """Match all things at once. ``settled`` is that of the last call with the same brokers."""
    index = _HostIndex(hosts)
    proven = [_proven(one, hosts, index) for one in things]
    pairs = list(zip(things, proven, strict=True))
    brokers = {proof.broker for proof in proven if isinstance(proof, Match) and proof.broker is not None}
    numbered: set[tuple[str, int]] = set()
    contradicted = False
    for one, proof in pairs:
        if (found := one.numbered) is None:
            continue
        name, number = found
        if isinstance(proof, Match):
            contradicted |= proof.broker not in (None, number)
        else:
            numbered.add(found)
            contradicted |= bool(proof and number not in proof) or index.denies(number, name.rpartition("/")[2])
    known = {} if contradicted else dict(settled or {})
    if not contradicted and numbered and sorted([*brokers, *(n for _, n in numbered)]) == sorted(hosts):
        known = dict(numbered)
    return Matches(
        tuple(proof if isinstance(proof, Match) else _by_number(one, proof, known) for one, proof in pairs), known
    )


def claims(things: Sequence[Named], matches: Sequence[Match]) -> Mapping[int, tuple[str, ...]]:
    """Brokers that several different things claim, and these things: a conflict, of which none may be chosen."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    for one, matched in zip(things, matches, strict=True):
        if matched.broker is not None:
            found[matched.broker].add(one.text)
    return {broker: tuple(sorted(texts)) for broker, texts in sorted(found.items()) if len(texts) > 1}


def node_id(value: str) -> int | None:
    """The node id that a label states, larger than every broker's if it has too many digits; None of other text."""
    return int(value.lstrip("0")[: _LONGEST_ID + 1] or 0) if value.isascii() and value.isdigit() else None


def ordinal(name: str) -> int | None:
    """The number at the end of a name, after a dash or an underscore; None of an address, such as ip-10-0-0-2."""
    *before, last = name.replace("_", "-").split("-")
    number = node_id(last) if before else None
    if number is None or number > _LARGEST_ID:
        return None
    return None if len(before) > 2 and all(one.isdigit() for one in before[-3:]) else number


def host_of(address: str) -> str:
    """The host of ``host:port``, or of a host without a port, in lower case."""
    if address.startswith("["):
        address = address[1:].partition("]")[0]
    elif address.count(":") == 1:
        address = address.partition(":")[0]
    return address.rstrip(".").lower()


class _HostIndex:
    """Brokers by what they advertise."""

    def __init__(self, hosts: Hosts) -> None:
        self._exact: defaultdict[str, set[int]] = defaultdict(set)
        self._pods: defaultdict[str, set[tuple[int, str]]] = defaultdict(set)
        self._pods_of: defaultdict[int, set[str]] = defaultdict(set)
        shown = set()
        for broker, names in hosts.items():
            for host in map(host_of, names):
                self._exact[host].add(broker)
                parts = host.split(".")
                # pod.service, or pod.service.namespace.svc; pod.service.namespace may as well be a host of a domain.
                if len(parts) in (2, 3) or _of_pod(host):
                    self._pods[parts[0]].add((broker, parts[2] if len(parts) > 2 else ""))
                if len(parts) == 2 or _of_pod(host):
                    shown.add(broker)
                if _of_pod(host):
                    self._pods_of[broker].add(parts[0])
        self._whole = shown == set(hosts)

    def by_host(self, host: str) -> set[int]:
        """The brokers that advertise this very host."""
        return self._exact.get(host_of(host), set())

    def by_pod(self, pod: str, namespace: str) -> set[int]:
        """The brokers that advertise the host name of this pod; where a namespace is not known, of all brokers."""
        found = self._pods.get(pod.lower(), set())
        anywhere = self._whole and not namespace
        return {
            broker
            for broker, place in found
            if (place and place == namespace) or (self._whole and not place) or anywhere
        }

    def denies(self, broker: int, pod: str) -> bool:
        """Whether the broker advertises the host name of a pod, and it is another one."""
        known = self._pods_of.get(broker, set())
        return bool(known) and pod.lower() not in known


def _proven(one: Named, hosts: Hosts, index: _HostIndex) -> Match | frozenset[int]:
    """The match by proof; without one the brokers that share its host, as behind one load balancer, or none."""
    said = [found for found in _advertised(one, index) if found]
    by_host = set.intersection(*said) if said else None
    if by_host is not None and not by_host:
        return Match(None, "conflict", f"{one.text} has the hosts of different brokers: {_REMEDY}")
    ids, strimzi = one.stated_ids, ordinal(one.strimzi)
    if strimzi is not None and index.denies(strimzi, one.strimzi):
        return Match(None, "unmatched", f"{one.text} is another pod than the one that broker {strimzi} advertises")
    if len(ids) > 1:
        return Match(None, "conflict", f"{one.text} states the node ids {few(sorted(ids), _NAMED)}: correct its labels")
    agreed = ids if by_host is None else by_host & ids if ids else by_host
    if by_host is not None and not agreed:
        hosted = f"{one.text} has the host that broker {few(sorted(by_host), _NAMED)} advertises"
        stated = f"states the node id {few(sorted(ids), _NAMED)}"
        return Match(None, "conflict", f"{hosted}, and {stated}: correct the label")
    if len(agreed) != 1:
        return frozenset(agreed)
    (broker,) = agreed
    if broker not in hosts:
        return Match(None, "unknown", f"{one.text} names broker {broker}, which is not known")
    return Match(broker)


def _advertised(one: Named, index: _HostIndex) -> Iterator[set[int]]:
    yield from (index.by_host(host) for host in one.hosts if host)
    yield from (index.by_host(pod) | index.by_pod(pod, one.namespace) for pod in one.pods)


def _by_number(one: Named, shared: frozenset[int], settled: Mapping[str, int]) -> Match:
    numbered = one.numbered
    if numbered is not None and numbered[0] in settled:
        return Match(settled[numbered[0]])
    why = f"{one.text} is not what a broker advertises" if one.text else "no label names a broker"
    if shared:
        why = f"{one.text} has a host that brokers {few(sorted(shared), _NAMED)} advertise"
    if numbered is not None:
        why += ", and its number is no proof, as not every broker is matched exactly once by such a number"
    return Match(None, "conflict" if shared else "unmatched", f"{why}: {_REMEDY}")


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """What brokers advertise, as last known, also of a broker that is away.

    Metadata shows the listener that was asked, a broker's settings all. ``hosts`` are those that prove a broker, also
    by the status that a former process wrote, its host in the metadata first. ``read`` are the host in the metadata and
    those in the settings, at one time, as this process read them. ``due_at`` is when to read a broker's settings, in
    monotonic seconds. A broker whose settings are not read may share a load balancer with one whose are: a host proves
    what it did not before only where those of every live broker are read, unless it is of metadata or of a pod.
    """

    hosts: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    read: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    due_at: Mapping[int, float] = field(default_factory=dict)

    def seen(self, cluster: Cluster) -> KnownHosts:
        """The hosts after metadata was read. A live broker's host in it is not a former host of another one. A broker
        that has moved may have no other host any more, or still share those that it had; a new one may share any.
        """
        now = {b.id: host_of(b.host) for b in cluster.brokers.values() if b.host}
        read = {b: known for b, known in self.read.items() if known and now.get(b, known[0]) == known[0]}
        before = {b: set(self.hosts.get(b, ())) for b in cluster.named}
        moved = {b for b, own in now.items() if own not in before[b]}
        proven = set().union(*before.values()).difference(*(before[b] for b in moved))
        if not all(before[b] for b in cluster.live):
            proven = set()
        whole, shown, found = cluster.live <= read.keys(), set(now.values()), {}
        for broker in sorted(cluster.named):
            own = now.get(broker)
            known = read.get(broker) or (() if broker in moved else self.hosts.get(broker, ()))
            proofs = (h for h in known if (whole or h in proven or _of_pod(h)) and (own or h not in shown))
            found[broker] = _few_hosts((own, *proofs) if own else proofs)
        return KnownHosts(found, read, {b: at for b, at in self.due_at.items() if b in read or b not in self.read})

    def due(self, brokers: Iterable[int], now: float) -> list[int]:
        """Which of these brokers to ask for their settings now."""
        return sorted(b for b in brokers if now >= self.due_at.get(b, now))[:READS_AT_ONCE]

    def answered(self, asked: Iterable[int], settings: Mapping[int, Mapping[str, str]], now: float) -> KnownHosts:
        """What is known after these brokers were asked for their settings; ``seen`` then shows it."""
        read = {
            b: _few_hosts((*self.hosts[b][:1], *map(host_of, advertised_listeners(one).values())))
            for b, one in settings.items()
        }
        due_at = {b: now + (ADVERTISED_SECONDS if b in read else RETRY_SECONDS) for b in asked}
        return KnownHosts(self.hosts, {**self.read, **read}, {**self.due_at, **due_at})


def _of_pod(host: str) -> bool:
    """Whether it is the host name of a pod, which no other broker can have."""
    return host.split(".")[3:4] == ["svc"]


def _few_hosts(hosts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(host for host in hosts if len(host) <= _HOST_LENGTH))[:HOST_LIMIT]


def advertised_listeners(settings: Mapping[str, str], *, nowhere: bool = False) -> dict[str, str]:
    """``host:port`` by listener name, of a broker's settings; one that advertises nothing advertises its listeners.

    An address without a host (``:9092``) listens everywhere and leads nowhere: it is left out unless ``nowhere``.
    """
    entries = (settings.get(ADVERTISED_LISTENERS) or settings.get(LISTENERS) or "").split(",")
    found = {name: at for name, separator, at in (entry.strip().partition("://") for entry in entries) if separator}
    return found if nowhere else {name: at for name, at in found.items() if at and not at.startswith(_EVERYWHERE)}
