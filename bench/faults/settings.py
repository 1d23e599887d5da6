"""What can be chosen about a run. In: command line and environment. Out: ``Settings``. Called by ``__main__``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 60


@dataclass(frozen=True, slots=True)
class Settings:
    """One run: which scenarios (none named: all of them), how often, on how many partitions, and where figures go."""

    only: tuple[str, ...] = ()
    list_only: bool = False
    repeat: int = 1
    partitions: int = PARTITIONS
    reports: Path = ROOT / "reports"

    @property
    def report(self) -> Path:
        """Where the figures go: a run of another kind leaves the table of scenarios alone."""
        return self.reports / ("fault-times.json" if self.timed else "faults.json")

    @property
    def timed(self) -> bool:
        """Whether times are what the run is about."""
        return self.repeat > 1 or self.partitions != PARTITIONS

    @property
    def logs(self) -> Path:
        """Where the logs of operator and probers go."""
        return self.reports / "faults-logs"


def parse(arguments: Sequence[str], known: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the command line; ONLY in the environment means ``--only``. Exits with a message on bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m faults", description="Break real parts in many ways and judge what Bellwether says of each."
    )
    parser.add_argument(
        "--only", default=environment.get("ONLY", ""), help="run these scenarios alone: names with commas between"
    )
    parser.add_argument("--list", action="store_true", dest="list_only", help="say what there is, and run nothing")
    parser.add_argument("--repeat", type=int, default=1, help="play each so often; first, later, worst (1)")
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="over both topics (%(default)s)")
    parser.add_argument("--reports", type=Path, default=Settings().reports, help="folder for the figures (%(default)s)")
    chosen = parser.parse_args(arguments)
    only = tuple(dict.fromkeys(name for word in chosen.only.split(",") if (name := word.strip())))
    if unknown := [name for name in only if name not in known]:
        parser.error(f"no such scenario: {', '.join(unknown)}; --list says what there is")
    if chosen.repeat < 1 or chosen.partitions < 2 or chosen.partitions % 2:
        parser.error("--repeat must be at least 1, and --partitions an even number")
    return Settings(only, chosen.list_only, chosen.repeat, chosen.partitions, chosen.reports)
