"""What past disturbances lost is the same after a take-over, and a status cannot grow with it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from bellwether.api.v1alpha1.status.policy_status import HarmEpisodes
from bellwether.core.model.history.harm_history import EPISODES_KEPT, HarmCause, HarmHistory
from bellwether.core.settings.harm import LARGEST_LOST_SECONDS

HISTORY = HarmHistory({HarmCause.REACHABILITY: (3.5,), HarmCause.STORAGE: (1.2, LARGEST_LOST_SECONDS)})


def test_episodes_that_have_ended_survive_a_take_over() -> None:
    written = [entry.body() for entry in HarmEpisodes.of(HISTORY)]
    read = [HarmEpisodes.model_validate(entry) for entry in written]
    assert HarmEpisodes.to_core(read) == HISTORY


def test_an_episode_under_way_is_not_written() -> None:
    under_way = HarmHistory().after({1: [(HarmCause.STORAGE, 4.0)]})
    assert HarmEpisodes.of(under_way) == ()


@pytest.mark.parametrize("lost", [[], [1000] * (EPISODES_KEPT + 1), [-1], [round(LARGEST_LOST_SECONDS * 1000) + 1]])
def test_harm_beyond_bounds_is_refused(lost: list[int]) -> None:
    with pytest.raises(ValidationError, match="lostMilliseconds"):
        HarmEpisodes.model_validate({"cause": "Storage", "lostMilliseconds": lost})
