"""Settings of the load computation: minimum and maximum interval, duration of a peak."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """Whole seconds, each at least 1.

    ``shortest``: samples closer together than this are not compared: moments are whole seconds, so a rate over a few
    of them is mostly rounding, and two samplers' clocks differ. ``longest``: an interval longer than this is
    ignored. ``peak``: the peak is the rate that was reached for this long in a day.
    """

    shortest: int = 30
    longest: int = 600
    peak: int = 300

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 1:
                raise ValueError(f"{name} must be at least one second, and is {value}")
        if self.longest < self.shortest:
            raise ValueError(f"longest ({self.longest} s) must not be less than shortest ({self.shortest} s)")
