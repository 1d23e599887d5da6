"""``spec.promotion.waves``: steps in which a promoted broker gets its leaders back."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.base_model import Model, Rule, integer
from bellwether.core.settings import policy as core_policy

_DEFAULTS = core_policy.PromotionWaves()

Step = Annotated[int, Field(ge=1, le=100, strict=True)]


def _rise(waves: Waves) -> bool:
    steps = waves.steps
    return all(before < after for before, after in pairwise(steps)) and steps[-1:] == (100,)


class Waves(Model):
    """Steps in which a promoted broker gets its leaders back, to avoid a load peak of clients and a cold cache."""

    steps: tuple[Step, ...] = Field(
        default=_DEFAULTS.steps,
        min_length=1,
        max_length=20,
        description="Percentage of its leaders that the broker may lead after each step, in ascending order and"
        " ending with 100. [100] restores all leaders at once.",
    )
    pause_seconds: int = integer(
        _DEFAULTS.pause_seconds,
        0,
        86400,
        "Seconds between two steps. The next step also requires that the broker is healthy, does not"
        " lag, and is in the ISR of the partitions of that step.",
    )
    skip_up_to_leaders: int = integer(
        _DEFAULTS.skip_up_to_leaders,
        0,
        1_000_000,
        "If a broker has at most so many leaders to get back, they are restored at once.",
    )
    min_downtime_seconds: int = integer(
        _DEFAULTS.min_downtime_seconds,
        0,
        86400,
        "Seconds of downtime (fenced or not registered) from which on a returning broker gets its"
        " leaders back in steps as well; its partitions are reordered while it is down. 0 leaves this to"
        " Kafka, which restores them at once.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.steps.isSorted() && self.steps.all(s, self.steps.exists_one(t, t == s))"
            " && self.steps[self.steps.size() - 1] == 100",
            message="must be in ascending order and end with 100, such as [10, 50, 100]",
            holds=_rise,
            field="steps",
        ),
    )

    def to_core(self) -> core_policy.PromotionWaves:
        """Convert to the settings of the core."""
        return core_policy.PromotionWaves(**dict(self))
