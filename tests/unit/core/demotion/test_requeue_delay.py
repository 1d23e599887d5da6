"""When to look again, though no news comes."""

from __future__ import annotations

import pytest

from bellwether.core.demotion.requeue_delay import SOONEST_SECONDS, requeue_after
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.flap_damping import FlapCounter
from bellwether.core.settings.policy import Policy, Promotion
from testkit.values.builders import after, verdict

POLICY = Policy(name="main", promotion=Promotion(stabilization_seconds=10))


@pytest.mark.parametrize(
    ("state", "dwell_left", "flaps", "at", "seconds"),
    [
        pytest.param(HealthState.SICK, 3.0, None, 1, 3.0, id="until the dwell is over"),
        pytest.param(HealthState.SICK, None, None, 1, None, id="a demoted one waits for news"),
        pytest.param(HealthState.RECOVERING, None, None, 4, 6.0, id="until it has been well for long enough"),
        pytest.param(HealthState.RECOVERING, None, FlapCounter(3, after(0)), 4, 36.0, id="longer for one that flaps"),
        pytest.param(HealthState.RECOVERING, None, None, 99, SOONEST_SECONDS, id="overdue, but never at once for ever"),
        pytest.param(HealthState.HEALTHY, None, None, 1, None, id="a well one waits for nothing"),
    ],
)
def test_an_appointment_is_kept_when_it_is_due(
    state: HealthState, dwell_left: float | None, flaps: FlapCounter | None, at: int, seconds: float | None
):
    found = requeue_after(verdict(1, state), dwell_left=dwell_left, flaps=flaps, policy=POLICY, now=after(at))
    assert found == seconds
