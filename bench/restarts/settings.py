"""What can be chosen about a run. In: the command line. Out: ``Settings``. Called by ``__main__``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KAFKA_CHECKS_SECONDS = 300
"""``leader.imbalance.check.interval.seconds``: how often Kafka itself brings leaders back."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One run. Times are in seconds; the rate is in records a second, of all producers together.

    ``gap`` is how long a rollout waits after each broker is back in every ISR; ``patience`` how long leaders may take
    to be back after the last one.
    """

    brokers: int = 6
    partitions: int = 120
    rate: float = 60.0
    quiet: float = 10.0
    gap: float = 5.0
    patience: float = KAFKA_CHECKS_SECONDS + 30.0
    reports: Path = ROOT / "reports"

    @property
    def report(self) -> Path:
        """Where the figures go."""
        return self.reports / "restart.json"

    @property
    def logs(self) -> Path:
        """Where the logs of operator, prober and traffic go."""
        return self.reports / "restart-logs"


def parse(arguments: Sequence[str]) -> Settings:
    """Settings from the command line. Exits with a message on bad input."""
    default = Settings()
    parser = argparse.ArgumentParser(
        prog="python -m restarts", description="Restart real brokers one after another, with the operator and without."
    )
    parser.add_argument("--brokers", type=int, default=default.brokers, help="at least 3 (default %(default)s)")
    parser.add_argument("--partitions", type=int, default=default.partitions, help="over all topics (%(default)s)")
    parser.add_argument("--rate", type=float, default=default.rate, help="records a second (%(default)s)")
    parser.add_argument("--quiet", type=float, default=default.quiet, help="seconds of quiet before and after")
    parser.add_argument("--gap", type=float, default=default.gap, help="seconds from one broker to the next")
    parser.add_argument(
        "--patience", type=float, default=default.patience, help="seconds to wait for the leaders (%(default)s)"
    )
    parser.add_argument("--reports", type=Path, default=default.reports, help="folder for the figures (%(default)s)")
    chosen = parser.parse_args(arguments)
    if chosen.brokers < 3:
        parser.error("--brokers must be at least 3: every partition has three replicas")
    if chosen.partitions < chosen.brokers or chosen.rate <= 0:
        parser.error("--partitions must be at least --brokers, and --rate more than 0")
    return Settings(**vars(chosen))
