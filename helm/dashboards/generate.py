"""Write the dashboards into the chart, or compare them with the committed files.

``python -m dashboards.generate`` writes; ``--check`` prints the differences and fails if there are any.
"""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import availability, oncall

FOLDER = Path(__file__).parents[1] / "bellwether" / "files" / "dashboards"


def files() -> dict[str, str]:
    """Each file's name and its text."""
    made = {"on-call.json": oncall.dashboard(), "availability.json": availability.dashboard()}
    return {name: JSONEncoder(sort_keys=True, indent=2).encode(dashboard) + "\n" for name, dashboard in made.items()}


def differences(folder: Path = FOLDER) -> str:
    """What would change in a folder, as a unified diff; a file that is not generated counts."""
    wanted, found = files(), {p.name: p.read_text() for p in folder.glob("*") if p.suffix == ".json"}
    lines: list[str] = []
    for name in sorted({*wanted, *found}):
        old, new = found.get(name, "").splitlines(True), wanted.get(name, "").splitlines(True)
        lines += difflib.unified_diff(old, new, f"found/{name}", f"wanted/{name}")
    return "".join(lines)


def main() -> None:
    """Write, or check."""
    if sys.argv[1:] == ["--check"]:
        difference = differences()
        if difference:
            sys.exit(f"{difference}error: the dashboards are not what their source says; run: make generate")
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
