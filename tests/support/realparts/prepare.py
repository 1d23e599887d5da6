"""Fetches and builds the real parts into the cache, so that later starts take seconds.

In: ``python -m realparts.prepare [--for demo|tests] [PART ...]``. Out: one compact view of the progress; exit status
1 with one sentence when a part cannot be had.
"""

from __future__ import annotations

import argparse
import signal
import sys
from types import FrameType

from rich.console import Console

from realparts import cache
from realparts.parts import PARTS, Use, named, used_by
from realparts.preparation import Preparation
from realparts.preparation_view import PreparationView
from realparts.toolruns import DownloadFailed

LOG_WIDTH = 160
"""Columns where there is no terminal to ask."""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m realparts.prepare", description=__doc__)
    parser.add_argument("part", nargs="*", help=f"one of: {', '.join(part.name for part in PARTS)} (default: all)")
    parser.add_argument("--for", dest="use", choices=("demo", "tests"), default="tests", help="all that it needs")
    chosen = parser.parse_args()
    try:
        parts = named(chosen.part) if chosen.part else used_by(Use[chosen.use.upper()])
    except KeyError as unknown:
        parser.error(f"no such part: {unknown.args[0]}; there are {', '.join(part.name for part in PARTS)}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    console = Console(stderr=True, width=None if sys.stderr.isatty() else LOG_WIDTH)
    try:
        with Preparation(parts) as preparation, PreparationView(preparation, console, "real parts"):
            found = preparation.wait()
    except DownloadFailed as problem:
        sys.exit(f"error: {problem}\nWhat is complete stays in {cache.root()}.")
    except KeyboardInterrupt:
        sys.exit(f"interrupted; what is complete stays in {cache.root()}")
    if chosen.part:
        for name, path in found.items():
            print(f"{name:<15} {path}")


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """What Ctrl-C does."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
