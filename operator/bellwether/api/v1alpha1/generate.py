"""Write the files generated from the models: ``crds/`` and ``docs/reference/crds.md``.

``python -m bellwether.api.v1alpha1.generate`` writes them below the current directory. With ``--check`` it writes
nothing, prints a diff and exits 1 if there is one. Called by ``make generate`` and the freshness test.
"""

from __future__ import annotations

from pathlib import Path

from bellwether.api.generated_files import Generated
from bellwether.api.v1alpha1.schema.crd_manifests import KINDS, manifest
from bellwether.api.v1alpha1.schema.reference_page import page

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


GENERATED = Generated("bellwether.api.v1alpha1.generate", __doc__, files)
differences, write, main = GENERATED.differences, GENERATED.write, GENERATED.main


if __name__ == "__main__":
    raise SystemExit(main())
