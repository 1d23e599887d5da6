"""What can be chosen about a run. In: command line and environment. Out: ``Settings``. Called by ``__main__``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Settings:
    """One run: which scenarios (none named: all of them), and where the figures go."""

    only: tuple[str, ...] = ()
    list_only: bool = False
    reports: Path = ROOT / "reports"

    @property
    def report(self) -> Path:
        """Where the figures go."""
        return self.reports / "faults.json"

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
    parser.add_argument("--reports", type=Path, default=Settings().reports, help="folder for the figures (%(default)s)")
    chosen = parser.parse_args(arguments)
    only = tuple(dict.fromkeys(name for word in chosen.only.split(",") if (name := word.strip())))
    if unknown := [name for name in only if name not in known]:
        parser.error(f"no such scenario: {', '.join(unknown)}; --list says what there is")
    return Settings(only, chosen.list_only, chosen.reports)
