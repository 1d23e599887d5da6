"""Write the files generated from the models: ``crds/`` and the kinds in ``docs/reference/``.

``python -m bellwether.api.v1alpha1.generate`` writes them below the current directory. With ``--check`` it writes
nothing, prints a diff and exits 1 if there is one. Called by ``make generate``, ``make verify`` and the freshness
tests; the chart's generator is a ``Generated`` as well.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bellwether.api.v1alpha1.schema.crd_manifests import KINDS, manifest
from bellwether.api.v1alpha1.schema.reference_page import pages

NOTICE = "# Generated from operator/bellwether/api/v1alpha1; do not edit: make generate\n"

README = """# Custom resource definitions

Generated from the models in `operator/bellwether/api/v1alpha1`. Do not edit: change the models and run `make generate`.

    kubectl apply --server-side -f crds/

An installed `bellwether` prints the same definitions: `bellwether crds | kubectl apply --server-side -f -`. Each field
is explained by `kubectl explain leadershippolicy.spec` and in `docs/reference/`.

Deleting a definition deletes every object of its kind, and with the policies their finalizers' work begins: delete the
policies first and let the operator restore the replica orders.
"""


@dataclass(frozen=True, slots=True)
class Generated:
    """The files that one ``python -m <module>`` generates."""

    module: str
    description: str | None
    files: Callable[[], Mapping[Path, str]]

    def differences(self, root: Path) -> str:
        """Unified diff between the files below ``root`` and the generated ones; empty if they are up to date."""
        lines: list[str] = []
        for path, expected in self.files().items():
            found = (root / path).read_text(encoding="utf-8") if (root / path).exists() else ""
            lines += difflib.unified_diff(
                found.splitlines(keepends=True), expected.splitlines(keepends=True), f"found/{path}", f"expected/{path}"
            )
        return "".join(lines)

    def write(self, root: Path) -> None:
        """Write all files below ``root``."""
        for path, text in self.files().items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")

    def main(self, arguments: list[str] | None = None) -> int:
        """Run the command line. Returns the exit status: 1 if ``--check`` finds a difference."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}", description=self.description)
        parser.add_argument(
            "--check", action="store_true", help="write nothing; print a diff and exit 1 if there is one"
        )
        parser.add_argument(
            "--root", type=Path, default=Path(), help="root of the repository (default: the current directory)"
        )
        options = parser.parse_args(arguments)
        if not (options.root / "pyproject.toml").exists():
            parser.error(
                f"{options.root.resolve()} has no pyproject.toml: run it at the repository's root, or give --root"
            )
        if options.check:
            difference = self.differences(options.root)
            sys.stdout.write(difference)
            if difference:
                sys.stderr.write("error: generated files are stale; run: make generate\n")
            return 1 if difference else 0
        self.write(options.root)
        return 0


def files() -> dict[Path, str]:
    """Every generated file by its path below the root of the repository."""
    generated = {Path("crds") / f"{kind.plural}.yaml": NOTICE + manifest(kind) for kind in KINDS}
    generated[Path("crds") / "README.md"] = README
    generated |= {Path("docs/reference") / name: text for name, text in pages(KINDS).items()}
    return generated


GENERATED = Generated("bellwether.api.v1alpha1.generate", __doc__, files)
differences, write, main = GENERATED.differences, GENERATED.write, GENERATED.main


if __name__ == "__main__":
    raise SystemExit(main())
