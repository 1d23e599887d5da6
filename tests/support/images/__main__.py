"""The command line: ``python -m images build``."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from images import building, recipe
from images.machine import MachineLacks


def main() -> None:
    """Build the targets asked for and print where their archives are."""
    parser = argparse.ArgumentParser(prog="python -m images")
    verbs = parser.add_subparsers(dest="verb", required=True)
    build = verbs.add_parser("build", help="build a target as a docker-archive (root, Debian)")
    build.add_argument("--target", choices=recipe.TARGETS, action="append", help="default: all of them")
    build.add_argument("--archive", type=Path, help="copy the archive of a single target here")
    asked = parser.parse_args()
    targets = asked.target or list(recipe.TARGETS)
    if asked.archive and len(targets) != 1:
        parser.error("--archive takes one --target")
    try:
        for target in targets:
            built = building.archive(target)
            if asked.archive:
                asked.archive.parent.mkdir(parents=True, exist_ok=True)
                built = shutil.copyfile(built, asked.archive)
            print(f"{recipe.name(target):<24} {built}")
    except (MachineLacks, building.BuildFailed) as problem:
        sys.exit(f"error: {problem}")


if __name__ == "__main__":
    main()
