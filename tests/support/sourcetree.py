"""The project's own files, as the architecture tests look at them.

In: a root folder. Out: the files that belong to the project below it: what git tracks or would track, or, where the
root is no git checkout, everything outside hidden and build folders. Called by ``tests/architecture`` alone.
"""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The folders that hold importable code; each is on the path of an editable install.
SOURCES = ("operator", "spark", "helm", "tests/support", "bench", "examples")

LITERARY = (
    r"amiss|anew|anybody|befall\w*|besides?|dear(?:er|ly)?|everybody|for good|forthwith|heard of|hitherto|in vain|lest",
    r"fall(?:s|en)? (?:ill|silent)|turn(?:s|ed|ing)? (?:ill|sick)|sicken(?:s|ed)?|unwell|mend(?:s|ed|ing)?",
    r"(?:gives?|gave|given) way|hand(?:s|ed|ing)? over|of (?:its|their) own accord|pass(?:es|ed|ing)? over",
    r"nobody|somebody|someone|who(?:m)?ever|told|thereof|upon|vouch\w*|wardens?|whence|wish(?:es)?",
    r"stands?(?!-?by\b)(?! by\b)|stood|whose word|(?:a|the) person's word",
)
LITERARY_WORD = re.compile(rf"\b(?:{'|'.join(LITERARY)})\b", re.IGNORECASE)
"""Words that plain technical English does without. Allowed, because they are terms: stand by, stand-by, standalone, and
Sick, the value of the API."""

_CODE = re.compile(r"``[^`\n]*``|`[^`\n]*`")
_BUILT = {"__pycache__", "dist", "reports"}


def files(root: Path) -> list[Path]:
    """Every existing file of the project below ``root``, sorted."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        found = [root / name for name in listed.split("\0") if name]
    else:
        found = [p for p in root.rglob("*") if not _hidden(p.relative_to(root))]
    return sorted(p for p in found if p.is_file())


def sources(root: Path) -> list[Path]:
    """The Python files of the folders that hold importable code: what ships, and what the tests import."""
    return [p for p in files(root) if p.suffix == ".py" and p.relative_to(root).as_posix().startswith(SOURCES)]


def texts(root: Path) -> dict[Path, str]:
    """The text of every file that is text."""
    found = {}
    for path in files(root):
        try:
            found[path] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return found


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """Every line of the strings and comments of a Python file with its number, code in backticks left out."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield from enumerate(_CODE.sub("", token.string).splitlines(), token.start[0])


def _hidden(path: Path) -> bool:
    return any(part in _BUILT or (part.startswith(".") and part != ".ci") for part in path.parts)
