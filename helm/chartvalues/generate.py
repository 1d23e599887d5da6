"""Writes what is generated of the chart: ``values.yaml``, its schema, its README and its copies of the CRDs.

``python -m chartvalues.generate`` writes them below the current directory; with ``--check`` it writes nothing, prints
what differs and exits 1 when something does. ``make generate`` and ``make verify`` call it.
"""

from __future__ import annotations

from pathlib import Path

from bellwether import __version__
from bellwether.api.generated_files import Generated
from bellwether.api.v1alpha1.schema.crd_manifests import KINDS, manifest
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


GENERATED = Generated("chartvalues.generate", __doc__, files)
differences, write, main = GENERATED.differences, GENERATED.write, GENERATED.main


if __name__ == "__main__":
    raise SystemExit(main())
