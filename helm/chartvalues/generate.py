"""Write the generated files of the chart: ``values.yaml``, its schema, the README, the copies of the CRDs and a figure.

``python -m chartvalues.generate`` writes them below the current directory; with ``--check`` it writes nothing, prints
the differences and exits 1 if there are any. ``make generate`` and ``make verify`` call it.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from bellwether import __version__
from bellwether.api.v1alpha1.generate import Generated
from bellwether.api.v1alpha1.schema.crd_manifests import KINDS, manifest
from bellwether.core.model.quarantine_order import RETURN_SECONDS
from bellwether.probes.prober_commands import PROBERS
from chartvalues import chart_documents
from chartvalues.platform_values import REGISTRY

CHART = Path("helm/bellwether")

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
ICON = f"{REPOSITORY}/raw/v{__version__}/docs/images/icon.svg"
IMAGES = "".join(
    f"""
    - name: {name}
      image: {REGISTRY}/{name}:{__version__}
      platforms: [linux/amd64, linux/arm64]"""
    for name in ("bellwether", "bellwether-spark")
)
DEFINITIONS = "".join(
    f"""
    - kind: {kind.name}
      version: v1alpha1
      name: {kind.plural}.bellwether.dev
      displayName: {kind.name}
      description: {json.dumps(kind.schema()["description"])}"""
    for kind in KINDS
)

CHART_YAML = f"""# {chart_documents.NOTICE}
apiVersion: v2
name: bellwether
description: Moves partition leadership away from sick Apache Kafka brokers, and back when they are healthy.
type: application
version: {__version__}
appVersion: {__version__}
kubeVersion: ">=1.30.0-0"
keywords:
  - kafka
  - operator
  - leader election
icon: {ICON}
home: {REPOSITORY}
sources:
  - {REPOSITORY}
maintainers:
  - name: {PROJECT["authors"][0]["name"]}
    url: {REPOSITORY}/blob/main/MAINTAINERS.md
annotations:
  artifacthub.io/category: streaming-messaging
  artifacthub.io/license: {PROJECT["license"]}
  artifacthub.io/operator: "true"
  artifacthub.io/prerelease: "true"
  artifacthub.io/images: |{IMAGES}
  artifacthub.io/crds: |{DEFINITIONS}
  artifacthub.io/links: |
    - name: Documentation
      url: {PROJECT["urls"]["Documentation"]}
    - name: Support
      url: {REPOSITORY}/blob/main/SUPPORT.md
"""

README = f"""# Helm chart

<!-- {chart_documents.NOTICE} -->

Installs Bellwether: the custom resource definitions, two replicas of the operator, and the probers that the values
name. [How to install, upgrade and uninstall it](../../docs/install.md).

    helm install bellwether oci://{REGISTRY}/charts/bellwether --version {__version__} \\
      --namespace bellwether --create-namespace

`values.schema.json` rejects values of a wrong type and unknown keys. Required values have no default; `name[]` means
the items of a list, `name{{{{}}}}` the entries of a map.

{{table}}
"""


def _probers() -> str:
    """What templates need of the table of probers: by kind signal, option and source, and the sidecars' signals."""
    found: dict[str, object] = {
        name.capitalize(): {"signal": "".join(one.types[:1]), "option": one.source_option, "source": one.default}
        for name, one in PROBERS.items()
        if not one.sidecar
    }
    found["sidecars"] = [type_ for one in PROBERS.values() if one.sidecar for type_ in one.types]
    return json.dumps(found, indent=2) + "\n"


def files() -> dict[Path, str]:
    """Every generated file by its path below the root of the repository."""
    generated = {
        CHART / "Chart.yaml": CHART_YAML,
        CHART / "values.yaml": chart_documents.values_yaml(),
        CHART / "values.schema.json": chart_documents.schema_json(),
        CHART / "README.md": README.format(table=chart_documents.table()),
        CHART / "files" / "return-seconds": f"{RETURN_SECONDS}\n",
        CHART / "files" / "probers.json": _probers(),
    }
    return generated | {
        CHART / "files" / "crds" / f"{kind.plural}.yaml": f"# {chart_documents.NOTICE}\n{manifest(kind)}"
        for kind in KINDS
    }


GENERATED = Generated("chartvalues.generate", __doc__, files)
differences, write, main = GENERATED.differences, GENERATED.write, GENERATED.main


if __name__ == "__main__":
    raise SystemExit(main())
