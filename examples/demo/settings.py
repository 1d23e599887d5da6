"""What can be chosen about a run. In: command line and environment. Out: ``Settings``. Called by ``__main__``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOPICS = ("orders", "payments", "clicks", "invoices", "telemetry")


@dataclass(frozen=True, slots=True)
class Settings:
    """One run of the demo. Times are in seconds; the rate is in records a second, of all producers together."""

    brokers: int = 3
    partitions: int = 1000
    rate: float = 100.0
    delay_milliseconds: int = 80
    stabilization: int = 5
    hold: float = 6.0
    repeat: int = 1
    only: str = ""
    keep: bool = False
    picture: Path | None = None
    reports: Path = ROOT / "reports"

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics, each with as many partitions as the others."""
        return TOPICS

    @property
    def per_topic(self) -> int:
        """Partitions of each topic."""
        return self.partitions // len(TOPICS)

    @property
    def rest(self) -> float:
        """For how many seconds the time after a repair is measured, once all is back."""
        return self.hold / 2

    @property
    def report(self) -> Path:
        """Where the figures go."""
        return self.reports / ("demo.json" if self.repeat == 1 else "bench-demo.json")

    @property
    def logs(self) -> Path:
        """Where the logs of operator, probes and traffic go."""
        return self.reports / "demo-logs"


def parse(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the command line; KEEP=1 in the environment means ``--keep``. Exits with a message on bad input."""
    default = Settings()
    parser = argparse.ArgumentParser(prog="python -m demo", description="Break a real Kafka cluster and watch it heal.")
    parser.add_argument("--brokers", type=int, default=default.brokers, help="at least 3 (default %(default)s)")
    parser.add_argument(
        "--partitions", type=int, default=default.partitions, help="over all topics (default %(default)s)"
    )
    parser.add_argument(
        "--rate", type=float, default=default.rate, help="records a second, both producers together (%(default)s)"
    )
    parser.add_argument(
        "--delay-milliseconds", type=int, default=default.delay_milliseconds, help="of the slow disk (%(default)s)"
    )
    parser.add_argument(
        "--stabilization", type=int, default=default.stabilization, help="the policy's, in seconds (%(default)s)"
    )
    parser.add_argument(
        "--hold",
        type=float,
        default=default.hold,
        help="seconds that each state is measured for, half of it after a repair (%(default)s)",
    )
    parser.add_argument("--repeat", type=int, default=default.repeat, help="repeat the faults, report median and worst")
    parser.add_argument("--only", choices=("listener", "disk"), default="", help="break this alone (default both)")
    parser.add_argument("--keep", action="store_true", help="leave everything up afterwards, until Ctrl-C (or KEEP=1)")
    parser.add_argument("--picture", type=Path, help="draw the run as a moving SVG into this file")
    parser.add_argument("--reports", type=Path, default=default.reports, help="folder for the figures (%(default)s)")
    chosen = parser.parse_args(arguments)
    if environment.get("KEEP", "") not in ("", "0"):
        chosen.keep = True
    if chosen.brokers < 3:
        parser.error("--brokers must be at least 3: partitions have three replicas")
    if chosen.partitions < len(TOPICS) or chosen.partitions % len(TOPICS):
        parser.error(f"--partitions must be a multiple of {len(TOPICS)}, the number of topics")
    if chosen.picture and not chosen.picture.parent.is_dir():
        parser.error(f"--picture: there is no folder {chosen.picture.parent}")
    for name in ("rate", "delay_milliseconds", "stabilization", "hold", "repeat"):
        if getattr(chosen, name) <= 0:
            parser.error(f"--{name.replace('_', '-')} must be above 0")
    return Settings(**vars(chosen))
