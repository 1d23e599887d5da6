"""What past disturbances lost, and the limit that they recommend."""

from __future__ import annotations

import pytest

from bellwether.core.model.history.harm_history import EPISODES_KEPT, HarmCause, HarmHistory, LimitFactor

DISK, LISTENER = HarmCause.STORAGE, HarmCause.REACHABILITY
PRICE = 3.0


def disks(*lost: float) -> HarmHistory:
    return HarmHistory({DISK: lost})


@pytest.mark.parametrize(
    ("history", "cause", "factor"),
    [
        pytest.param(HarmHistory(), LISTENER, 1.0, id="of a listener nothing is known"),
        pytest.param(HarmHistory(), DISK, 2.0, id="a disk is assumed to hang for seconds"),
        pytest.param(disks(*[2.0] * 16), DISK, 2.0, id="short ones only"),
        pytest.param(disks(*[4.0] * 14, 600.0, 600.0), DISK, 2.0, id="long ones are the exception"),
        pytest.param(disks(600.0, 600.0, 600.0), DISK, 0.5, id="long ones only"),
        pytest.param(disks(*[1.0] * 8, *[600.0] * 8), DISK, 0.5, id="half of them are long"),
        pytest.param(
            disks(*[2.0] * 8, *[600.0] * 8), DISK, 1.0, id="half are long, and half longer than half the cost"
        ),
    ],
)
def test_limit_is_one_that_would_have_cost_clients_least(history: HarmHistory, cause: HarmCause, factor: float):
    assert history.limit_factor(cause, PRICE).factor == factor


def test_ended_episode_is_kept_with_its_largest_figure():
    history = HarmHistory()
    for lost in (1.2, 4.0, 3.1):
        history = history.after({1: [(DISK, lost)]})
        assert history.ended == {}
    assert history.after({1: [(DISK, 0.0)]}) == HarmHistory({DISK: (4.0,)})


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param([{1: [(DISK, 2.0)]}, {1: [(DISK, None)]}, {1: [(DISK, 3.0)]}], id="another cause for a moment"),
        pytest.param([{1: [(DISK, None)]}, {1: [(DISK, 3.0)]}], id="another cause before"),
        pytest.param([{1: [(DISK, 2.0)], 2: [(DISK, 1.0)]}, {1: [(DISK, 3.0)]}], id="two disks at the same time"),
        pytest.param(
            [{1: [(DISK, 2.0)], 2: [(DISK, 1.0)]}, {1: [(DISK, 2.0)], 2: [(DISK, 1.0)], 3: [(DISK, 9.0)]}],
            id="a third that joins two",
        ),
        pytest.param([{1: [(DISK, 0.9)]}], id="less than any limit"),
    ],
)
def test_nothing_is_learned_from_harm_of_several_brokers(seen: list[dict[int, list]]):
    history = HarmHistory()
    for one in [*seen, {broker: [(DISK, 0.0)] for broker in (1, 2, 3)}]:
        history = history.after(one)
    assert history == HarmHistory()


def test_a_broker_that_is_down_shares_no_cause_with_another():
    down = {9: [(DISK, None), (LISTENER, None)]}
    history = HarmHistory().after(down).after({1: [(DISK, 4.0)], **down}).after({1: [(DISK, 0.0)], **down})
    assert history.ended == {DISK: (4.0,)}


def test_what_is_not_known_at_present_ends_no_episode():
    history = HarmHistory().after({1: [(DISK, 2.0)]})
    assert history.after({1: []}) is history
    assert history.after({}) == HarmHistory()


def test_only_the_last_episodes_are_kept():
    history = HarmHistory()
    for number in range(EPISODES_KEPT + 3):
        history = history.after({1: [(LISTENER, 10.0 + number)]}).after({1: [(LISTENER, 0.0)]})
    assert history.ended[LISTENER] == tuple(10.0 + n for n in range(3, EPISODES_KEPT + 3))


@pytest.mark.parametrize(
    ("learned", "words"),
    [
        (LimitFactor(), ""),
        (LimitFactor(2.0), "the limit is 6 s, as slowdowns of disks are assumed to end before that"),
        (LimitFactor(2.0, 4), "the limit is 6 s, as slowdowns of disks in this cluster usually end before that"),
        (
            LimitFactor(0.5, 4),
            "the limit is 1.5 s, as slowdowns of disks in this cluster usually cost clients more than a move",
        ),
    ],
)
def test_the_reason_of_a_limit_fits_into_half_a_sentence(learned: LimitFactor, words: str):
    assert learned.words(DISK, PRICE * learned.factor) == words
