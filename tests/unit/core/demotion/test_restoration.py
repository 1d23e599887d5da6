"""Who comes back, and how far: steps upwards while all is well, waits with their reasons, a fresh start when down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from bellwether.core.demotion.restoration import Restorations, advance_restorations
from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.restoration_waves import RestorationTrigger, ReturningBroker, wave_position
from bellwether.core.model.strimzi import Strimzi
from bellwether.core.model.undo_record import RESTORE_TIMEOUT, Cause, DemotedBroker, UndoRecord
from bellwether.core.reasons import Reason
from bellwether.core.settings.placement import Placement, Preference
from bellwether.core.settings.policy import Policy, Promotion, PromotionWaves
from bellwether.core.signals import OverrideState
from testkit.messages import assert_wording
from testkit.values.builders import (
    after,
    cluster,
    demoted,
    entry,
    override,
    partition,
    record,
    returning,
    snapshot,
    verdict,
    verdicts,
)

NOW = 500
SOME = PromotionWaves(skip_up_to_leaders=5, pause_seconds=60)


def away(count: int = 30, *, isr: Sequence[int] = (1, 2, 3), fenced: Sequence[int] = (), brokers: int = 4) -> Cluster:
    """So many partitions of broker 1 that others lead."""
    return cluster(
        *(partition(index=i, replicas=[2, 3, 1], isr=isr) for i in range(count)), brokers=brokers, fenced=fenced
    )


def displaced(seen: Cluster, *brokers: DemotedBroker) -> UndoRecord:
    return record({p.key: entry() for p in seen.partitions}, *brokers)


def decide(
    seen: Cluster | None = None,
    *waves: ReturningBroker,
    undo: UndoRecord | None = None,
    kept: Sequence[int] = (),
    promoted: Sequence[int] = (),
    settings: PromotionWaves = SOME,
    judged: Mapping[int, Verdict] | None = None,
    said: OverrideState | None = None,
    strimzi: Strimzi | None = None,
    wish: Placement | None = None,
    pods: Mapping[int, Pod] | None = None,
) -> Restorations:
    seen = seen or away()
    found = replace(undo or displaced(seen), returning={w.broker: w for w in waves})
    overrides = [override(1, said)] if said is not None else []
    facts = replace(snapshot(seen, now=after(NOW), undo=found, overrides=overrides), strimzi=strimzi, pods=pods)
    policy = Policy(name="main", promotion=Promotion(waves=settings), placement=wish)
    return advance_restorations(
        Context(facts, judged if judged is not None else verdicts(seen), policy), kept, promoted
    )


def share(made: Restorations, broker: int = 1) -> int:
    """The share of a broker; 100 where it is not on the way back."""
    return made.returning[broker].share if broker in made.returning else 100


class TestBeginning:
    def test_a_promoted_broker_begins_with_the_first_step(self):
        seen = away()
        made = decide(seen, undo=displaced(seen, demoted()), promoted=[1])
        wave = made.returning[1]
        assert (wave.share, wave.since, wave.waved_at) == (10, after(NOW), after(NOW))
        assert wave.trigger is RestorationTrigger.RECOVERED
        assert sum(not wave.withholds(p.key) for p in seen.partitions) == 3
        assert made.waits == {}

    @pytest.mark.parametrize("cause", [Cause.OVERRIDE, Cause.COMMAND])
    def test_one_that_person_had_demoted_is_said_to_be_released(self, cause: Cause):
        seen = away()
        made = decide(seen, undo=displaced(seen, demoted(cause=cause)), promoted=[1])
        assert made.returning[1].trigger is RestorationTrigger.RELEASED

    @pytest.mark.parametrize(("count", "waved"), [(5, False), (6, True)])
    def test_a_few_leaders_return_at_once(self, count: int, waved: bool):
        seen = away(count)
        assert bool(decide(seen, undo=displaced(seen, demoted()), promoted=[1]).returning) is waved

    def test_partitions_that_it_never_led_do_not_count(self):
        seen = away()
        undo = record({p.key: entry(baseline=(2, 1, 3)) for p in seen.partitions}, demoted())
        assert decide(seen, undo=undo, promoted=[1]) == Restorations()

    @pytest.mark.parametrize(("count", "waved"), [(10, False), (12, True)])
    def test_what_it_leads_for_racks_sake_counts_with_its_part(self, count: int, waved: bool):
        """All are at home in rack b; of what rack a leads instead, brokers 1 and 2 are to lead a half each."""
        led = [partition(index=i, replicas=[2, 1, 3]) for i in range(count)]
        seen = cluster(*led, brokers=4, racks={1: "a", 2: "a", 3: "b", 4: "b"})
        undo = record({p.key: entry(baseline=(3, 1, 2), written=(2, 3, 1)) for p in led}, demoted())
        made = decide(seen, undo=undo, promoted=[1], wish=Placement(Preference(("a",))))
        assert bool(made.returning) is waved

    def test_a_single_step_of_100_switches_waves_off(self):
        seen = away()
        undo = displaced(seen, demoted())
        assert (
            decide(seen, undo=undo, promoted=[1], settings=PromotionWaves(steps=(100,), skip_up_to_leaders=0))
            == Restorations()
        )

    def test_a_persons_word_gives_everything_back_at_once(self):
        seen = away()
        made = decide(seen, undo=displaced(seen, demoted()), promoted=[1], said=OverrideState.PROMOTED)
        assert made == Restorations()
        assert decide(seen, returning(1, 10), said=OverrideState.PROMOTED) == Restorations()

    def test_promoted_lagging_broker_gets_nothing_until_in_sync(self):
        seen = away(isr=[2, 3])
        made = decide(seen, undo=displaced(seen, demoted()), promoted=[1])
        assert made.returning[1].share == 0
        assert made.waits[1].reason is Reason.PREFERRED_NOT_IN_ISR

    def test_a_decommissioned_broker_has_no_way_back(self):
        seen = cluster(partition(replicas=[2, 3]), brokers=[2, 3])
        assert decide(seen, returning(1, 10), judged=verdicts(seen)) == Restorations()


class TestGoingOn:
    @pytest.mark.parametrize(
        ("before", "seconds", "then"),
        [
            pytest.param(10, 59, 10, id="before the pause is over"),
            pytest.param(10, 60, 50, id="once it is over"),
            pytest.param(50, 60, 100, id="the last step"),
            pytest.param(0, 0, 10, id="the first step waits for no pause"),
            pytest.param(30, 60, 50, id="a share that the policy has no more goes on with the next"),
        ],
    )
    def test_a_step_comes_after_its_pause(self, before: int, seconds: int, then: int):
        assert share(decide(None, returning(1, before, after(NOW - seconds)))) == then

    def test_what_waits_for_time_alone_says_when(self):
        wait = decide(None, returning(1, 10, after(NOW - 45))).waits[1]
        assert (wait.reason, wait.again_seconds) == (Reason.RESTORING_IN_WAVES, 15)

    def test_a_step_remembers_when_the_return_began(self):
        wave = decide(None, returning(1, 10, after(0))).returning[1]
        assert (wave.since, wave.waved_at, wave.share) == (after(0), after(NOW), 50)

    @pytest.mark.parametrize("state", ["sick", "suspect", "unknown", "recovering"])
    def test_a_broker_that_is_not_healthy_waits_at_its_share(self, state: str):
        seen = away()
        made = decide(seen, returning(1, 10), judged=verdicts(seen, **{state: [1]}))
        assert share(made) == 10
        assert made.waits[1].reason is verdict(1, verdicts(seen, **{state: [1]})[1].state).reason

    @pytest.mark.parametrize(("state", "then"), [("suspect", 50), ("sick", 10), ("unknown", 10)])
    def test_evidence_too_weak_to_demote_does_not_hold_forever(self, state: str, then: int):
        seen, long_ago = away(), after(NOW - RESTORE_TIMEOUT.total_seconds() - 1)
        judged = verdicts(seen, **{state: [1]})
        judged[1] = replace(judged[1], since=long_ago)
        assert share(decide(seen, returning(1, 10, long_ago), judged=judged)) == then

    def test_a_follower_that_lags_waits_though_it_is_healthy(self):
        seen = away()
        judged = verdicts(seen)
        judged[1] = replace(judged[1], slow=Reason.REPLICATION_LAGGING)
        made = decide(seen, returning(1, 10), judged=judged)
        assert (share(made), made.waits[1].reason) == (10, Reason.REPLICATION_LAGGING)

    def test_broker_demoted_again_has_no_way_back(self):
        assert decide(None, returning(1, 10), kept=[1]) == Restorations()

    def test_others_at_work_hold_the_next_step(self):
        busy = Strimzi(namespace="kafka", name="main", listener="tls", paused=True)
        made = decide(None, returning(1, 10), strimzi=busy)
        assert (share(made), made.waits[1].reason) == (10, Reason.EXTERNAL_OPERATION)

    def test_a_broker_in_maintenance_waits_though_it_is_healthy(self):
        made = decide(None, returning(), pods={1: Pod("kafka-1", ready=False)})
        assert share(made) == 10
        assert made.waits[1].reason == Reason.RESTARTING
        assert_wording(made.waits[1].message)


class TestInSync:
    def seen(self, *behind: int) -> Cluster:
        """Of 30 partitions these are behind."""
        return cluster(
            *(partition(index=i, replicas=[2, 1, 3], isr=[2, 3] if i in behind else [1, 2, 3]) for i in range(30)),
            brokers=4,
        )

    def of_the_second_step(self) -> int:
        return next(p.index for p in self.seen().partitions if 10 <= wave_position(p.key) < 50)

    def of_the_last_step(self) -> int:
        return next(p.index for p in self.seen().partitions if wave_position(p.key) >= 50)

    def test_one_partition_of_next_step_that_is_behind_holds_it(self):
        seen = self.seen(self.of_the_second_step())
        made = decide(seen, returning(1, 10), undo=displaced(seen))
        assert share(made) == 10
        assert made.waits[1].reason is Reason.PREFERRED_NOT_IN_ISR
        assert f"orders-{self.of_the_second_step()}" in made.waits[1].message

    def test_what_a_later_step_returns_may_still_be_behind(self):
        seen = self.seen(self.of_the_last_step())
        assert share(decide(seen, returning(1, 10), undo=displaced(seen))) == 50

    def test_what_the_racks_let_it_lead_is_waited_for_too(self):
        seen = self.seen(self.of_the_second_step())
        seen = replace(seen, brokers={b: replace(one, rack="a" if b == 1 else "b") for b, one in seen.brokers.items()})
        undo = record({p.key: entry(baseline=(2, 1, 3), written=(2, 1, 3)) for p in seen.partitions})
        wish = Placement(Preference(("a",)))
        assert share(decide(seen, returning(1, 10), undo=undo)) == 50
        assert share(decide(seen, returning(1, 10), undo=undo, wish=wish)) == 10

    def test_a_partition_in_reassignment_is_not_waited_for(self):
        behind = self.of_the_second_step()
        seen = self.seen(behind)
        moving = tuple(replace(p, adding=(1,)) if p.index == behind else p for p in seen.partitions)
        assert share(decide(replace(seen, partitions=moving), returning(1, 10), undo=displaced(seen))) == 50

    def test_partition_that_never_catches_up_does_not_hold_others_forever(self):
        seen = self.seen(self.of_the_second_step())
        for waited, then in ((RESTORE_TIMEOUT, 10), (RESTORE_TIMEOUT + timedelta(seconds=1), 50)):
            judged = {b: replace(v, since=after(NOW) - waited) for b, v in verdicts(seen).items()}
            wave = returning(1, 10, after(NOW) - waited)
            assert share(decide(seen, wave, undo=displaced(seen), judged=judged)) == then


class TestUnjudged:
    """A cluster without probers: every broker is Unknown, and Kafka's metadata is all there is."""

    def test_signals_that_demoted_must_be_heard_again(self):
        seen = away()
        made = decide(seen, returning(1, 10), judged=verdicts(seen, unknown=[1, 2, 3, 4]))
        assert share(made) == 10

    @pytest.mark.parametrize("coming", [RestorationTrigger.RELEASED, RestorationTrigger.RESTARTED])
    def test_others_go_on(self, coming: RestorationTrigger):
        seen = away()
        wave = replace(returning(1, 10), trigger=coming)
        assert share(decide(seen, wave, judged=verdicts(seen, unknown=[1, 2, 3, 4]))) == 50

    def test_missing_verdict_is_waited_for_only_for_a_time(self):
        seen, wave = away(), replace(returning(1, 10, after(NOW - 100)), trigger=RestorationTrigger.RESTARTED)
        judged = verdicts(seen, unknown=[1])
        judged[1] = replace(judged[1], since=after(NOW - 100))
        assert share(decide(seen, wave, judged=judged)) == 10
        long_ago = after(NOW) - RESTORE_TIMEOUT - timedelta(seconds=1)
        judged[1] = replace(judged[1], since=long_ago)
        assert share(decide(seen, replace(wave, waved_at=long_ago), judged=judged)) == 50


class TestCold:
    COLD = replace(SOME, min_downtime_seconds=120)

    def seen(self) -> Cluster:
        """Broker 1 is dead and first of 30 orders."""
        return cluster(
            *(partition(index=i, replicas=[1, 2, 3], isr=[2, 3], leader=2) for i in range(30)),
            brokers=[2, 3, 4],
        )

    def decide(
        self, seen: Cluster, *waves: ReturningBroker, down_for: int = 120, settings: PromotionWaves = COLD
    ) -> Restorations:
        judged = {b: replace(v, since=after(NOW - down_for)) for b, v in verdicts(seen, down=[1]).items()}
        return decide(seen, *waves, undo=record(), judged=judged, settings=settings)

    def test_broker_down_for_long_gets_nothing_until_back(self):
        made = self.decide(self.seen())
        assert made.returning == {1: ReturningBroker(1, 0, after(NOW), after(NOW), RestorationTrigger.RESTARTED)}
        assert made.waits[1].reason is Reason.BROKER_DOWN

    def test_a_short_restart_is_left_to_kafka(self):
        assert self.decide(self.seen(), down_for=119) == Restorations()

    def test_it_is_off_unless_the_policy_asks_for_it(self):
        assert PromotionWaves().min_downtime_seconds == 0
        assert self.decide(self.seen(), settings=SOME) == Restorations()

    def test_a_started_cold_return_keeps_its_state(self):
        began = replace(returning(1, 0, after(10)), trigger=RestorationTrigger.RESTARTED)
        assert self.decide(self.seen(), began).returning == {1: began}

    def test_one_that_goes_down_while_returning_starts_again_at_zero(self):
        assert self.decide(self.seen(), returning(1, 50)).returning[1] == ReturningBroker(
            1, 0, after(NOW), after(NOW), RestorationTrigger.RESTARTED
        )

    def test_one_that_is_down_for_moment_keeps_what_it_had(self):
        assert share(self.decide(self.seen(), returning(1, 50), down_for=5)) == 50

    def test_a_fenced_broker_is_down_too(self):
        seen = cluster(
            *(partition(index=i, replicas=[1, 2, 3], isr=[2, 3], leader=2) for i in range(30)), brokers=4, fenced=[1]
        )
        assert share(self.decide(seen)) == 0

    def test_half_of_the_brokers_down_are_left_to_kafka(self):
        half = replace(self.seen(), brokers={b: v for b, v in self.seen().brokers.items() if b != 4})
        four = replace(half, partitions=(*half.partitions, partition("other", replicas=[4, 2], isr=[2], leader=2)))
        assert self.decide(four) == Restorations()

    def test_nothing_is_reordered_for_it_while_others_work_on_cluster(self):
        seen = self.seen()
        judged = {b: replace(v, since=after(0)) for b, v in verdicts(seen, down=[1]).items()}
        busy = Strimzi(namespace="kafka", name="main", listener="tls", paused=True)
        assert decide(seen, undo=record(), judged=judged, settings=self.COLD, strimzi=busy) == Restorations()

    def test_a_demoted_broker_that_dies_stays_demoted(self):
        seen = self.seen()
        judged = {b: replace(v, since=after(0)) for b, v in verdicts(seen, down=[1]).items()}
        assert decide(seen, undo=record({}, demoted()), kept=[1], judged=judged, settings=self.COLD) == Restorations()

    def test_once_back_and_in_sync_its_leaders_return_in_steps(self):
        seen = cluster(*(partition(index=i, replicas=[2, 1, 3]) for i in range(30)), brokers=4)
        undo = record({p.key: entry(written=(2, 1, 3)) for p in seen.partitions})
        began = replace(returning(1, 0, after(10)), trigger=RestorationTrigger.RESTARTED)
        assert share(decide(seen, began, undo=undo, settings=self.COLD)) == 10
