"""``spec.promotion.waves``: in which steps a broker gets its leaders back."""

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
    """In which steps a broker gets its leaders back, so that clients and caches do not meet all of them at once."""

    steps: tuple[Step, ...] = Field(
        default=_DEFAULTS.steps,
        min_length=1,
        max_length=20,
        description="The share of its leaders, in percent, that the broker may lead after each step: rising, and 100 at"
        " the end. [100] returns all of them at once.",
    )
    pause_seconds: int = integer(
        _DEFAULTS.pause_seconds,
        0,
        86400,
        "How long to watch a step before the next one. The broker must then be well, not lag, and be in the ISR of"
        " whatever the next step returns.",
    )
    skip_up_to_leaders: int = integer(
        _DEFAULTS.skip_up_to_leaders,
        0,
        1_000_000,
        "A broker with at most so many leaders to get back gets them at once.",
    )
    min_downtime_seconds: int = integer(
        _DEFAULTS.min_downtime_seconds,
        0,
        86400,
        "A broker that was down (fenced or not registered) for so long is cold and gets its leaders back in steps, too:"
        " its partitions are reordered while it is down. 0 leaves them to Kafka, which returns all of them at once.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.steps.isSorted() && self.steps.all(s, self.steps.exists_one(t, t == s))"
            " && self.steps[self.steps.size() - 1] == 100",
            message="must rise from step to step and end at 100, such as [10, 50, 100]",
            holds=_rise,
            field="steps",
        ),
    )

    def to_core(self) -> core_policy.PromotionWaves:
        """The same as a value of the core."""
        return core_policy.PromotionWaves(**dict(self))
