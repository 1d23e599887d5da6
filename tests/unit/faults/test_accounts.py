"""What was said and seen: only changes are kept, first times stay, and metadata tells who was put last."""

from __future__ import annotations

from demo.observations import Observations, Seen
from faults.accounts import Account, Word, displaced

HEALTHY = Word("Healthy")
SICK = Word("Sick", "StorageSlow")


def observed(before: dict[int, tuple[int, ...]], after: dict[int, tuple[int, ...]]) -> Observations:
    seen = Observations()
    for at, orders in enumerate((before, after)):
        seen.add(float(at), {("t", n): Seen(order[0], order, order) for n, order in orders.items()})
    return seen


def test_a_word_that_is_said_again_is_kept_once() -> None:
    seen = Account()
    for at in (0.0, 1.0, 2.0):
        seen.hear(at, 1, HEALTHY, demoted=False)
    seen.hear(3.0, 1, SICK, demoted=True)
    seen.hear(4.0, 1, SICK, demoted=True)
    assert seen.words == {1: [(0.0, HEALTHY), (3.0, SICK)]}
    assert (seen.demoted_at, seen.free_at) == ({1: 3.0}, {1: 0.0})


def test_a_broker_that_leads_again_was_not_leaderless() -> None:
    seen = Account()
    for at, count in ((1.0, 0), (2.0, 0), (3.0, 4), (4.0, 0)):
        seen.see(at, {1: count}, [])
    assert seen.leaderless_at == {1: 4.0}
    assert seen.leads(1) == 0


def test_the_same_page_counts_once() -> None:
    seen = Account()
    seen.page("x")
    seen.page("x")
    assert seen.pages == ["x"]


def test_a_word_matches_by_standing_and_by_reason_where_one_is_named() -> None:
    assert SICK.matches("Sick")
    assert SICK.matches("Sick/StorageSlow")
    assert not SICK.matches("Sick/ExternallyUnreachable")
    assert not SICK.matches("Healthy")


def test_the_first_right_word_is_that_of_the_stretch_that_still_lasts() -> None:
    seen = Account()
    for at, word in ((0.0, SICK), (1.0, HEALTHY), (2.0, SICK)):
        seen.hear(at, 1, word, demoted=False)
    assert seen.first(1, lambda word: word == SICK) == 2.0
    assert seen.first(1, lambda word: word == HEALTHY) is None


def test_a_broker_that_is_last_in_every_order_now_and_was_not_is_displaced() -> None:
    assert displaced(observed({0: (1, 2, 3), 1: (2, 3, 1)}, {0: (2, 3, 1), 1: (2, 3, 1)})) == (1,)


def test_a_broker_that_is_not_last_in_some_order_is_not_displaced() -> None:
    assert displaced(observed({0: (1, 2, 3), 1: (3, 1, 2)}, {0: (2, 3, 1), 1: (3, 1, 2)})) == ()


def test_a_broker_that_was_always_last_is_not_displaced() -> None:
    assert displaced(observed({0: (1, 2, 3)}, {0: (1, 2, 3)})) == ()


def test_two_displaced_brokers_share_the_end_of_no_order() -> None:
    before = {0: (1, 2, 3), 1: (4, 2, 3), 2: (2, 1, 3), 3: (2, 4, 3)}
    after = {0: (2, 3, 1), 1: (2, 3, 4), 2: (2, 3, 1), 3: (2, 3, 4)}
    assert displaced(observed(before, after)) == (1, 4)
