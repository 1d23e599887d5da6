"""What may be said of a follower: never more lag than there is, and no blame for what a leader does."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.cluster import Broker, Cluster, Partition, TopicPartition
from bellwether.ports.kafka import BrokerLogEnds
from bellwether.probes.replication.lag_state import weigh
from bellwether.probes.replication.offset_history import MOST_POINTS, Lag, OffsetHistory

NAME = TopicPartition("t", 0)


@dataclass
class Log:
    """A leader and one follower as they really are: every end of the leader with the time from which it was so."""

    times: list[float] = field(default_factory=lambda: [0.0])
    ends: list[int] = field(default_factory=lambda: [0])
    follower: int = 0

    def append(self, at: float, records: int) -> None:
        if records:
            self.times.append(at)
            self.ends.append(self.ends[-1] + records)

    def lag(self, now: float) -> float:
        """The truth: how long ago the leader's end passed the follower's."""
        beyond = bisect_right(self.ends, self.follower)
        return 0.0 if beyond == len(self.ends) else now - self.times[beyond]


@dataclass(frozen=True)
class Step:
    seconds: float
    records: int
    fetched: int
    asked: bool
    follower_first: float
    answered: bool


STEPS = st.lists(
    st.builds(
        Step,
        seconds=st.floats(0.1, 20),
        records=st.integers(0, 9),
        fetched=st.integers(0, 12),
        asked=st.booleans(),
        follower_first=st.floats(0, 0.09),
        answered=st.booleans(),
    ),
    max_size=80,
)


def cluster(**changes: int) -> Cluster:
    leader, epoch = changes.get("leader", 1), changes.get("epoch", 1)
    partition = Partition("t", "T", 0, (1, 2), (1, 2), leader, epoch)
    return Cluster("c", {1: Broker(1), 2: Broker(2)}, (partition,))


@given(STEPS, st.booleans())
def test_a_lag_is_never_overstated_and_understated_by_the_gaps_between_rounds_at_most(
    steps: list[Step], always_answers: bool
):
    log, trails, now = Log(), OffsetHistory(), 0.0
    gap, last_round, watched_since = 0.0, 0.0, None
    for step in steps:
        now += step.seconds
        log.append(now, step.records)
        log.follower = min(log.ends[-1], log.follower + step.fetched)
        if not step.asked:
            continue
        answers = always_answers or step.answered
        # The follower is asked up to a tenth of a second before the leader, or at the same moment.
        heard = {1: BrokerLogEnds({NAME: log.ends[-1]}, now, now)}
        if answers:
            heard[2] = BrokerLogEnds({NAME: log.follower}, now - step.follower_first, now)
        watched_since = now if watched_since is None else watched_since
        gap, last_round = max(gap, now - last_round), now
        for lag in trails.round(cluster(), heard):
            true = log.lag(now)
            assert lag.seconds <= true
            if always_answers and len(steps) < MOST_POINTS:
                assert lag.seconds >= min(true - gap, now - watched_since) - 0.1
            assert (lag.records > 0) == (log.follower < log.ends[-1])


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 3), st.integers(0, 50), st.integers(0, 50)), max_size=40))
def test_whatever_happened_to_leaders_and_logs_a_follower_at_its_leaders_end_never_lags(
    past: list[tuple[int, int, int, int]],
):
    trails = OffsetHistory()
    for second, (leader, epoch, one, two) in enumerate(past):
        now = 60.0 * second
        heard = {1: BrokerLogEnds({NAME: one}, now, now), 2: BrokerLogEnds({NAME: two}, now, now)}
        for lag in trails.round(cluster(leader=leader, epoch=epoch), heard):
            ends = {1: one, 2: two}
            if ends[lag.follower] >= ends[leader]:
                assert lag.seconds == 0
            if second == 0 or past[second - 1][:2] != (leader, epoch):
                assert lag.seconds == 0, "another leader or epoch restarts the measurement"


@given(st.integers(3, 9), st.data())
def test_only_slow_followers_are_blamed_and_while_they_are_few_all_of_them(brokers: int, data: st.DataObject):
    ids = range(1, brokers + 1)
    slow = data.draw(st.sets(st.sampled_from(ids), max_size=brokers - 1))
    serving_slowly = data.draw(st.just(set()) | st.sets(st.sampled_from(ids), max_size=brokers))
    late = {(led, f) for led in ids for f in ids if led != f and (f in slow or led in serving_slowly)}
    lags = [
        Lag(TopicPartition("t", 100 * led + f), led, f, 60.0 if (led, f) in late else 0.0, 1, True)
        for led in ids
        for f in ids
        if led != f
    ]
    blamed = {broker for broker, look in weigh(lags, 10.0, lambda _led, _f: True).items() if look.blamed}
    assert blamed <= slow
    if not serving_slowly and 2 * len(slow) < brokers:
        assert blamed == slow
