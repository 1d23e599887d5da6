"""Who leads instead: at home where possible, spread otherwise, and no change of mind without need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether.core.model.loads import LeaderLoads, Loads
from bellwether.core.model.rack_ranking import RackRanking
from bellwether.core.planning.assignment import LeaderChoice, RackShares, assign_within_capacity, order_with
from bellwether.core.settings.placement import Preference
from bellwether.core.settings.policy import Capacity
from testkit.values.builders import cluster, partition


def displaced(
    seen: Partition,
    demoted: Sequence[int],
    baseline: Sequence[int] | None = None,
    able: Sequence[int] | None = None,
    preferred: Sequence[int] | None = None,
) -> LeaderChoice:
    order = tuple(baseline if baseline is not None else seen.replicas)
    may = tuple(able if able is not None else [b for b in order if b in seen.isr and b not in demoted])
    return LeaderChoice(seen, seen.key, order, may, tuple(preferred if preferred is not None else may))


@pytest.mark.parametrize(
    ("first", "baseline", "demoted", "order"),
    [
        pytest.param(2, (1, 2, 3), {1}, (2, 3, 1), id="the demoted goes last"),
        pytest.param(3, (1, 2, 3), {1}, (3, 2, 1), id="the others keep their order"),
        pytest.param(1, (1, 2, 3), {2}, (1, 3, 2), id="a follower that is demoted goes last, too"),
        pytest.param(3, (1, 2, 3), {1, 2}, (3, 1, 2), id="several demoted keep the baseline order"),
        pytest.param(None, (1, 2, 3), {1}, (2, 3, 1), id="no broker can lead: last all the same"),
        pytest.param(None, (1, 2, 3), {1, 2, 3}, (1, 2, 3), id="all demoted: as it was"),
        pytest.param(None, (1,), {1}, (1,), id="the only replica"),
        pytest.param(1, (1, 2, 3), {1}, (1, 2, 3), id="a demoted one that must lead is first"),
    ],
)
def test_order_follows_from_baseline_demoted_and_chosen(
    first: int | None, baseline: tuple[int, ...], demoted: set[int], order: tuple[int, ...]
):
    assert order_with(first, baseline, demoted) == order


def assign_leaders(displaced: Sequence[LeaderChoice], leading: Mapping[int, int]) -> dict[PartitionKey, int]:
    """The leader of each partition, where brokers already lead so many and have no limits."""
    return dict(assign_within_capacity(displaced, LeaderLoads(leading)).chosen)


def test_partition_returns_to_preferred_leader_however_full():
    follows = displaced(partition(replicas=[2, 1, 3]), demoted=[1])
    assert assign_leaders([follows], {2: 1000, 3: 0}) == {follows.partition.key: 2}


def test_new_leaders_are_spread_over_all_candidates():
    led = [displaced(partition(index=i, replicas=[1, 2 + i % 3, 2 + (i + 1) % 3]), demoted=[1]) for i in range(30)]
    counts = Counter(assign_leaders(led, {2: 0, 3: 0, 4: 0}).values())
    assert set(counts.values()) == {10}


def test_leaders_are_never_piled_on_one_neighbour():
    led = [displaced(partition(index=i, replicas=[1, 2, 3]), demoted=[1]) for i in range(300)]
    assert set(Counter(assign_leaders(led, {2: 0, 3: 0}).values()).values()) == {150}


def test_a_broker_that_leads_much_already_gets_fewer():
    led = [displaced(partition(index=i, replicas=[1, 2, 3]), demoted=[1]) for i in range(10)]
    assert Counter(assign_leaders(led, {2: 10, 3: 4}).values()) == {3: 8, 2: 2}


def test_partitions_with_one_candidate_are_counted_before_those_with_choice():
    free = displaced(partition(index=0, replicas=[1, 2, 3]), demoted=[1])
    bound = displaced(partition(index=1, replicas=[1, 2, 3], isr=[1, 2]), demoted=[1])
    assert assign_leaders([free, bound], {}) == {free.partition.key: 3, bound.partition.key: 2}


def test_a_partition_without_candidates_gets_no_leader():
    nobody = displaced(partition(replicas=[1, 2, 3], isr=[1]), demoted=[1])
    assert assign_leaders([nobody], {2: 0, 3: 0}) == {}


def test_an_unhealthy_broker_is_chosen_only_without_another_candidate():
    led = [displaced(partition(index=i), demoted=[1], preferred=[3]) for i in range(4)]
    assert set(assign_leaders(led, {2: 0, 3: 100}).values()) == {3}


def moved(index: int, to: int, *, isr: Sequence[int] = (1, 2, 3, 4)) -> LeaderChoice:
    """Baseline 1-2-3-4, broker 1 demoted, led by another since."""
    order = order_with(to, (1, 2, 3, 4), {1})
    return displaced(partition(index=index, replicas=order, isr=isr), demoted=[1], baseline=(1, 2, 3, 4))


def test_a_choice_stays_while_the_spread_is_even_enough():
    standing = [moved(i, to=2 + i % 3) for i in range(30)]
    chosen = assign_leaders(standing, {2: 100, 3: 101, 4: 99})
    assert chosen == {d.partition.key: d.partition.replicas[0] for d in standing}


def test_the_spread_improves_when_a_dead_broker_is_back():
    standing = [moved(i, to=2 + i % 2) for i in range(30)]
    counts = Counter(assign_leaders(standing, {2: 0, 3: 0, 4: 0}).values())
    assert max(counts.values()) - min(counts.values()) <= 2
    assert counts[4] >= 8


def test_spread_improves_through_broker_sharing_with_both():
    """Brokers 2 and 4 share no partition: 2 gives to 3 what 3 gives to 4, though neither step is a visible one."""
    upper = [displaced(partition(index=i, replicas=(2, 3, 1)), [1], baseline=(1, 2, 3)) for i in range(100)]
    lower = [displaced(partition(index=i, replicas=(3, 4, 1)), [1], baseline=(1, 3, 4)) for i in range(100, 200)]
    leading = {2: 200, 3: 180, 4: 260}
    counts = Counter(leading) + Counter(assign_leaders([*upper, *lower], leading).values())
    assert max(counts.values()) - min(counts.values()) < 0.1 * 840 / 3


def test_choices_count_after_forced_ones_even_for_small_differences():
    free = displaced(partition(index=0, replicas=[1, 2, 3]), demoted=[1])
    bound = displaced(partition(index=1, replicas=[1, 2, 3], isr=[1, 2]), demoted=[1])
    chosen = assign_leaders([free, bound], {2: 100, 3: 100})
    assert chosen == {free.partition.key: 3, bound.partition.key: 2}


def test_partition_does_not_move_where_that_only_exchanges_two_counts():
    """Brokers 2 and 3 lead 6 and 5: another leader makes them 5 and 6, whatever is evened out between 4 and 5."""
    kept = displaced(partition(index=0, replicas=(2, 3, 1)), [1], baseline=(1, 2, 3))
    crowded = [displaced(partition(index=i, replicas=(4, 5, 1)), [1], baseline=(1, 4, 5)) for i in range(1, 11)]
    chosen = assign_leaders([kept, *crowded], {2: 5, 3: 5})
    assert chosen[kept.key] == 2
    assert Counter(chosen.values()) == {2: 1, 4: 5, 5: 5}


def test_an_improvement_is_settled_at_once():
    def again(chosen: dict[PartitionKey, int]) -> list[LeaderChoice]:
        return [moved(k.partition, to=b) for k, b in sorted(chosen.items())]

    first = assign_leaders([moved(i, to=2) for i in range(40)], {2: 5, 3: 1, 4: 0})
    assert assign_leaders(again(first), {2: 5, 3: 1, 4: 0}) == first


def test_a_choice_that_may_no_longer_lead_is_replaced():
    gone = moved(0, to=2, isr=[1, 3, 4])
    assert assign_leaders([gone], {3: 7, 4: 2}) == {gone.partition.key: 4}


def test_the_same_facts_give_the_same_choice_in_any_order():
    led = [displaced(partition(index=i, replicas=[1, 2 + i % 3, 2 + (i + 1) % 3]), demoted=[1]) for i in range(30)]
    assert assign_leaders(led, {2: 3, 4: 1}) == assign_leaders(led[::-1], {4: 1, 2: 3})


BY_LOAD = Capacity(max_load=10**9)


def test_lightest_takes_over_however_many_it_leads_with_known_loads():
    """Broker 2 leads few that are heavy, broker 3 many that are light."""
    led = [displaced(partition(index=i, replicas=[1, 2, 3]), demoted=[1]) for i in range(4)]
    loads = Loads({**{item.key: 10 for item in led}, **{PartitionKey("heavy", i): 1000 for i in range(2)}})
    account = LeaderLoads({2: 0, 3: 40}, BY_LOAD, loads)
    for i in range(2):
        account.add(2, PartitionKey("heavy", i))
    assert set(assign_within_capacity(led, account).chosen.values()) == {3}


def test_heaviest_is_placed_first_so_that_light_ones_fill_up():
    led = [displaced(partition(index=i, replicas=[1, 2, 3]), demoted=[1]) for i in range(5)]
    loads = Loads({item.key: load for item, load in zip(led, (10, 10, 10, 10, 100), strict=True)})
    chosen = assign_within_capacity(led, LeaderLoads({2: 0, 3: 0}, BY_LOAD, loads)).chosen
    assert sorted(Counter(chosen.values()).values()) == [1, 4]


def test_a_choice_by_load_stays_when_loads_change_or_vanish():
    standing = [moved(i, to=2) for i in range(30)]
    other = Loads({item.key: 10 ** (i % 5) for i, item in enumerate(standing)})
    for loads in (other, Loads()):
        chosen = assign_within_capacity(standing, LeaderLoads({2: 0, 3: 0, 4: 0}, BY_LOAD, loads)).chosen
        assert set(chosen.values()) == {2}


RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}


def ranking(**weights: int) -> RackRanking:
    return RackRanking.of(Preference(weights=tuple(weights.items())), cluster(partition(), brokers=5, racks=RACKS))


def led(by: RackRanking, **counts: int) -> RackShares:
    shares = RackShares()
    first = {"a": 1, "b": 3, "c": 5}
    for rack, count in counts.items():
        for _ in range(count):
            shares.add(by, first[rack])
    return shares


def test_the_rack_furthest_from_its_share_gets_the_next_leader():
    by = ranking(a=3, b=1)
    assert led(by, a=2, b=1).wanting(by, (1, 3)) == [1]
    assert led(by, a=6, b=1).wanting(by, (1, 3)) == [3]


def test_all_candidates_of_that_rack_are_offered():
    by = ranking(a=1, b=1)
    assert led(by, b=4).wanting(by, (2, 3, 1)) == [2, 1]


def test_rack_without_weight_leads_only_where_no_other_can():
    by = ranking(a=1, b=1)
    assert led(by, a=50, b=50).wanting(by, (5, 3)) == [3]
    assert led(by).wanting(by, (5,)) == (5,)


def test_without_weights_all_are_wanted_alike():
    plain = RackRanking.of(Preference(("a",)), cluster(partition(), brokers=5, racks=RACKS))
    shares = RackShares()
    shares.add(plain, 1)
    shares.add(None, 1)
    assert shares.wanting(plain, (3, 1)) == (3, 1)
    assert shares.wanting(None, (3, 1)) == (3, 1)
    assert list(shares.uneven()) == []


@pytest.mark.parametrize(
    ("counts", "uneven"),
    [
        pytest.param({"a": 70, "b": 30}, False, id="as the weights ask for"),
        pytest.param({"a": 68, "b": 31}, False, id="near enough"),
        pytest.param({"a": 60, "b": 40}, True, id="a third too many"),
        pytest.param({"a": 67, "b": 33}, True, id="off by a tenth of the smaller share"),
        pytest.param({"a": 1, "b": 1}, False, id="too few to tell"),
        pytest.param({"a": 3, "b": 3}, False, id="off by less than two leaders"),
        pytest.param({"a": 100}, True, id="one has them all"),
    ],
)
def test_racks_are_uneven_when_one_is_visibly_off_its_share(counts: dict[str, int], uneven: bool):
    by = ranking(a=70, b=30)
    assert led(by, **counts).is_uneven(by) is uneven


def test_partition_changes_rack_only_where_both_come_nearer():
    by = ranking(a=70, b=30)
    assert led(by, a=60, b=40).better(by, 3, (1, 3)) == [1]
    assert led(by, a=70, b=30).better(by, 3, (1, 3)) == ()
    assert led(by, a=60, b=40).better(by, 1, (1, 3)) == ()
    equal = ranking(a=1, b=1)
    assert led(equal, a=2, b=1).better(equal, 1, (1, 3)) == (), "that would only exchange them"


def test_broker_outside_weighted_racks_is_no_part_of_account():
    by = ranking(a=1, b=1)
    shares = led(by, a=1, b=1, c=9)
    assert not shares.is_uneven(by)
    assert shares.better(by, 5, (5, 1)) == ()


def test_weighted_leader_stays_where_all_candidates_are_elsewhere():
    by = ranking(a=1, b=1)
    shares = led(by, a=9, b=1)
    assert shares.is_uneven(by)
    assert shares.better(by, 1, (5,)) == ()
    assert shares.better(by, 1, (9,)) == ()  # in an unknown rack
