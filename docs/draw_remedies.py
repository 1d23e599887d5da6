"""Generate ``remedies.json`` of the CLI from ``docs/reasons.md``: what to do about each reason.

``python docs/draw_remedies.py`` writes it; ``--check`` fails if the committed file differs.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
FILE = DOCS.parent / "operator" / "bellwether" / "cli" / "diagnosis" / "remedies.json"

ROW = re.compile(r"\| `(\w+)` \| (.+) \| (.+) \|")
LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


def remedies() -> str:
    """The file's text."""
    rows = filter(None, map(ROW.fullmatch, (DOCS / "reasons.md").read_text().splitlines()))
    found = {row[1]: LINK.sub(r"\1", row[3]).replace("`", "") for row in rows}
    return json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if FILE.read_text() == remedies() else f"{FILE.name} is outdated: make generate")
    FILE.write_text(remedies())
