"""Writes the files that come from the models: ``crds/`` and ``docs/reference/crds.md``.

``python -m bellwether.api.v1alpha1.generate`` writes them below the current directory; with ``--check`` it writes
nothing, prints what differs and exits 1 when something does. ``make generate`` and the freshness test call it.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from bellwether.api.v1alpha1.definitions import KINDS, manifest
from bellwether.api.v1alpha1.reference import page

NOTICE = "# Generated from operator/bellwether/api/v1alpha1; do not edit: make generate\n"

README = """# Custom resource definitions

Generated from the models in `operator/bellwether/api/v1alpha1`. Do not edit: change the models and run `make generate`.

    kubectl apply --server-side -f crds/

An installed `bellwether` prints the same definitions: `bellwether crds | kubectl apply --server-side -f -`. Each field
is explained by `kubectl explain leadershippolicy.spec` and in `docs/reference/crds.md`.

Deleting a definition deletes every object of its kind, and with the policies their finalizers' work begins: delete the
policies first and let the operator restore the replica orders.
"""


def files() -> dict[Path, str]:
    """Every generated file by its path below the root of the repository."""
    generated = {Path("crds") / f"{kind.plural}.yaml": NOTICE + manifest(kind) for kind in KINDS}
    generated[Path("crds") / "README.md"] = README
    generated[Path("docs/reference/crds.md")] = page(KINDS)
    return generated


def differences(root: Path) -> str:
    """How the files below ``root`` differ from what the models say, as a unified diff; empty when they are fresh."""
    lines: list[str] = []
    for path, wanted in files().items():
        found = (root / path).read_text(encoding="utf-8") if (root / path).exists() else ""
        lines += difflib.unified_diff(
            found.splitlines(keepends=True), wanted.splitlines(keepends=True), f"found/{path}", f"wanted/{path}"
        )
    return "".join(lines)


def write(root: Path) -> None:
    """Write every file below ``root``."""
    for path, text in files().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 1 when ``--check`` finds a difference."""
    parser = argparse.ArgumentParser(prog="python -m bellwether.api.v1alpha1.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; print what differs and exit 1")
    parser.add_argument("--root", type=Path, default=Path(), help="the repository's root (default: current directory)")
    options = parser.parse_args(arguments)
    if not (options.root / "pyproject.toml").exists():
        parser.error(f"{options.root.resolve()} has no pyproject.toml: run it at the repository's root, or give --root")
    if options.check:
        difference = differences(options.root)
        sys.stdout.write(difference)
        if difference:
            sys.stderr.write("error: generated files are stale; run: make generate\n")
        return 1 if difference else 0
    write(options.root)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
