"""What an image is made of, and the sum that names it.

In: the repository. Out: its files that the builder may see, as ``.dockerignore`` lists them, and a digest over their
content, so that an image is built again only when something that it is made of has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from bellwether import __version__
from images import base

ROOT = Path(__file__).resolve().parents[3]
# Target to the name that the image goes by.
TARGETS = {"operator": "bellwether", "spark": "bellwether-spark"}


def name(target: str) -> str:
    """The image's name with its tag, as in ``bellwether:0.1.0``."""
    return f"{TARGETS[target]}:{__version__}"


def files(root: Path = ROOT) -> Iterator[Path]:
    """The files that the builder gets, sorted. The ignore file names what is let in, one pattern a line."""
    allowed = [line[1:] for line in (root / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    found = {path for pattern in allowed for top in root.glob(pattern) for path in (top, *top.rglob("*"))}
    for path in sorted(found):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def digest(root: Path = ROOT) -> str:
    """Names the content: the Dockerfile, what it copies, and the base."""
    noted = hashlib.sha256(base.version().encode())
    for path in (root / "Dockerfile", *files(root)):
        noted.update(f"\n{path.relative_to(root)}\n".encode())
        noted.update(path.read_bytes())
    return noted.hexdigest()[:16]
