"""One round of log end offset requests to every broker of a cluster, and the lag of each broker.

In: cached cluster metadata, and a client that reads the log end offsets of one broker. Out: ``LagMeasurement``s. Called
by ``replication_probe`` each period, and by ``bellwether probe replication --once``. The brokers are queried in
parallel, each with its own timeout: a broker that does not answer makes only its own lag unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import structlog

from bellwether.core.model.cluster import Cluster, TopicPartition
from bellwether.core.settings.detection import ReplicationLag
from bellwether.kafka_connection import join_address
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.ports.kafka import BrokerLogEnds, ClusterReader, EndsReader
from bellwether.probes.replication.lag_state import LagMeasurement, weigh
from bellwether.probes.replication.offset_history import OffsetHistory

# Leaders and ISRs rarely change while no broker lags, and reading them costs more than reading all log ends.
MAP_SECONDS = 30.0
# Even with problems, at most a sixth of the time goes into reading metadata.
_MAP_PAUSES = 5.0
# More of them would only wait for each other: decoding answers is this process' own work.
_ASKED_AT_ONCE = 32
# A leader counts as writing when it has written within so many rounds.
_ACTIVE_ROUNDS = 3


class LagRounds:
    """Round after round of questions, and the looks that come of them. For one thread; ``close`` it at the end."""

    def __init__(self, maps: ClusterReader, client: EndsReader, clock: Clock) -> None:
        self._maps = maps
        self._client = client
        self._clock = clock
        self._log = structlog.get_logger(__name__)
        self._trails = OffsetHistory()
        self._cluster: Cluster | None = None
        self._questions: dict[int, dict[TopicPartition, int]] = {}
        self._unread = ""
        self._read_at = float("-inf")
        #: How long reading the map took, the last time.
        self.read_took = 0.0
        self._unsettled = False
        self._pool = ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="log-ends")

    @property
    def cluster(self) -> Cluster | None:
        """The map in use; None while none could be read."""
        return self._cluster

    def close(self) -> None:
        """Send no further requests."""
        self._pool.shutdown(wait=False)

    def round(
        self,
        settings: ReplicationLag,
        returning: frozenset[int] = frozenset(),
        progress: Callable[[], None] = lambda: None,
    ) -> dict[int, LagMeasurement]:
        """Query every broker once: one measurement each. Raises Transient or Terminal without metadata.

        ``returning``: see ``weigh``. ``progress`` is called, on any thread, as brokers have answered or
        not.
        """
        cluster = self._map()
        progress()
        answers = self._ask(cluster, settings, progress)
        # By the clock of the answers, which may be another one than ours.
        now = max((answer.received for answer in answers.values()), default=0.0)
        since = now - max(settings.threshold_seconds, _ACTIVE_ROUNDS * settings.period_seconds)
        found = weigh(
            self._trails.round(cluster, answers),
            settings.threshold_seconds,
            lambda leader, follower: self._trails.active(leader, follower, since),
            returning,
        )
        for broker in cluster.named:
            found[broker] = _measured(broker, found.get(broker), answers.get(broker), self._questions)
        self._unsettled = any(
            measurement.problem or measurement.lagging or measurement.outside for measurement in found.values()
        ) or any(answer.moved for answer in answers.values())
        return found

    def _map(self) -> Cluster:
        now = self._clock.monotonic()
        pause = _MAP_PAUSES * self.read_took
        if self._cluster is not None and now - self._read_at < (pause if self._unsettled else max(pause, MAP_SECONDS)):
            return self._cluster
        try:
            cluster = self._maps.read()
        except (Transient, Terminal) as error:
            if self._cluster is None:
                raise
            if self._unread != str(error):
                self._log.warning("metadata_read_failed", error=str(error))
            self._unread = str(error)
            return self._cluster
        if self._unread:
            self._unread = ""
            self._log.info("metadata_read_recovered")
        self._cluster, self._questions, self._read_at = cluster, _questions(cluster), self._clock.monotonic()
        self.read_took = self._read_at - now
        return cluster

    def _ask(
        self, cluster: Cluster, settings: ReplicationLag, progress: Callable[[], None]
    ) -> dict[int, BrokerLogEnds]:
        def ask(broker: int) -> BrokerLogEnds:
            answer = self._ask_one(cluster, broker, settings)
            progress()
            return answer

        asked = sorted(self._questions)
        return dict(zip(asked, self._pool.map(ask, asked), strict=True))

    def _ask_one(self, cluster: Cluster, number: int, settings: ReplicationLag) -> BrokerLogEnds:
        broker = cluster.brokers.get(number)
        if broker is None or broker.fenced or not broker.host or broker.port <= 0:
            return BrokerLogEnds(
                problem="it is fenced" if broker is not None and broker.fenced else "it is not registered"
            )
        address, questions = join_address(broker.host, broker.port), self._questions[number]
        longest = float(settings.timeout_seconds + settings.period_seconds)
        try:
            return self._client.ask(address, questions, settings.timeout_seconds, longest)
        except (Transient, Terminal, ValueError) as error:
            return BrokerLogEnds(problem=str(error))


def _questions(cluster: Cluster) -> dict[int, dict[TopicPartition, int]]:
    """What to ask each broker: the partitions that it holds, with the epoch that it must lead in, or -1.

    Led by another one meanwhile, it must not answer as the leader; which epoch a follower has come to is its own
    matter. A partition without a leader, or with a single replica, is no evidence.
    """
    found: dict[int, dict[TopicPartition, int]] = {}
    for partition in cluster.partitions:
        if partition.leader is None or len(partition.replicas) < 2:
            continue
        for broker in partition.replicas:
            epoch = partition.leader_epoch if broker == partition.leader else -1
            found.setdefault(broker, {})[partition.name] = epoch
    return found


def _measured(
    broker: int,
    measurement: LagMeasurement | None,
    answer: BrokerLogEnds | None,
    questions: Mapping[int, Mapping[TopicPartition, int]],
) -> LagMeasurement:
    """A look at a broker, or why there is none."""
    if answer is None:
        return measurement or LagMeasurement()  # it holds nothing that could lag
    if not answer.ends:
        return LagMeasurement(
            problem=answer.problem or "its partitions have moved: read again after the next metadata refresh"
        )
    if (measurement is None or not measurement.followed) and -1 in questions[broker].values():
        return LagMeasurement(problem=answer.problem or "none of the leaders that it follows has answered")
    return measurement or LagMeasurement()
