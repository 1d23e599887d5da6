"""How long a Sick broker waits for signals of a common cause, and when to look again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.demotion.cap import dwell_left
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.history.flap_damping import FlapCounter
from bellwether.core.model.history.harm_history import HarmCause
from bellwether.core.model.history.known_good import KnownGood
from bellwether.core.reporting.requeue import SOONEST_SECONDS, requeue_after
from bellwether.core.settings.policy import Demotion, Policy, Promotion
from testkit.values.builders import after, cluster, partition, snapshot, verdict, verdicts

POLICY = Policy(name="main", demotion=Demotion(dwell_seconds=4))


def left(other: HealthState, seconds: float, lost: float | None = 3.0) -> float:
    """Seconds that are left, so many after the harm of broker 1 was noticed, while broker 2 is in that state."""
    sick = replace(verdict(1, since=after(0)), harm=((HarmCause.STORAGE, lost),))
    seen = cluster(partition(replicas=[1, 2, 3]))
    judged = {**verdicts(seen), 1: sick, 2: verdict(2, other)}
    return dwell_left(sick, Context(snapshot(seen, now=after(seconds)), judged, POLICY))


def test_half_dwell_suffices_for_counted_harm_while_others_are_healthy() -> None:
    assert (left(HealthState.HEALTHY, 0.5), left(HealthState.HEALTHY, 2)) == (1.5, 0.0)


@pytest.mark.parametrize("lost", [None, 0.0])
def test_it_takes_the_whole_time_where_no_harm_is_counted(lost: float | None) -> None:
    assert left(HealthState.HEALTHY, 2, lost) == 2.0


@pytest.mark.parametrize("other", [state for state in HealthState if state is not HealthState.HEALTHY])
def test_it_takes_whole_time_while_another_broker_is_not_healthy(other: HealthState) -> None:
    assert (left(other, 2), left(other, 4)) == (2.0, 0.0)


@pytest.mark.parametrize(
    ("state", "dwell_left", "flaps", "known_good", "seconds"),
    [
        pytest.param(HealthState.SICK, 3.0, None, 1, 3.0, id="until the dwell is over"),
        pytest.param(HealthState.SICK, None, None, 1, None, id="a demoted one waits for news"),
        pytest.param(HealthState.RECOVERING, None, None, 4, 6.0, id="until it has been well for long enough"),
        pytest.param(HealthState.RECOVERING, None, FlapCounter(3, after(0)), 31, 9.0, id="longer for one that flaps"),
        pytest.param(HealthState.RECOVERING, None, FlapCounter(3, after(0)), 4, 10.0, id="while its time still counts"),
        pytest.param(HealthState.RECOVERING, None, None, 99, SOONEST_SECONDS, id="overdue, but never at once for ever"),
        pytest.param(HealthState.HEALTHY, None, None, 1, None, id="a well one waits for nothing"),
    ],
)
def test_an_appointment_is_kept_when_it_is_due(
    state: HealthState, dwell_left: float | None, flaps: FlapCounter | None, known_good: float, seconds: float | None
):
    policy = Policy(name="main", promotion=Promotion(stabilization_seconds=10))
    judged = replace(verdict(1, state), known_good=KnownGood(known_good))
    assert requeue_after(judged, dwell_left=dwell_left, flaps=flaps, policy=policy) == seconds
