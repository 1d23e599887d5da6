"""Writes what is generated of the chart: ``values.yaml``, its schema, its README and its copies of the CRDs.

``python -m chartvalues.generate`` writes them below the current directory; with ``--check`` it writes nothing, prints
what differs and exits 1 when something does. ``make generate`` and ``make verify`` call it.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from bellwether import __version__
from bellwether.api.v1alpha1.definitions import KINDS, manifest
from chartvalues import documents

CHART = Path("helm/bellwether")

CHART_YAML = f"""# {documents.NOTICE}
apiVersion: v2
name: bellwether
description: Moves leadership away from sick Apache Kafka brokers, and back when they are well.
type: application
version: {__version__}
appVersion: {__version__}
kubeVersion: ">=1.30.0-0"
keywords:
  - kafka
  - operator
  - leader election
"""

README = f"""# The chart

<!-- {documents.NOTICE} -->

Installs Bellwether: the custom resource definitions, the operator in two replicas, and as many probers as the values
name. [How to install, upgrade and uninstall it](../../docs/install.md).

    helm install bellwether helm/bellwether --namespace bellwether --create-namespace

`values.schema.json` refuses a value of the wrong type and a key that does not exist. Needed values have no default;
`name[]` stands for the members of a list.

{{table}}
"""


def files() -> dict[Path, str]:
    """Every generated file by its path below the root of the repository."""
    generated = {
        CHART / "Chart.yaml": CHART_YAML,
        CHART / "values.yaml": documents.values_yaml(),
        CHART / "values.schema.json": documents.schema_json(),
        CHART / "README.md": README.format(table=documents.table()),
    }
    return generated | {
        CHART / "files" / "crds" / f"{kind.plural}.yaml": f"# {documents.NOTICE}\n{manifest(kind)}" for kind in KINDS
    }


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
    parser = argparse.ArgumentParser(prog="python -m chartvalues.generate", description=__doc__)
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
