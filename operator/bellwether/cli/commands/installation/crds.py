"""``bellwether crds``: print the custom resource definitions, for ``kubectl apply --server-side -f -``."""

from __future__ import annotations

from typing import Any

import click


@click.command()
def crds(**options: Any) -> None:
    """Print the custom resource definitions (CRDs) as YAML.

    Install or upgrade them with: bellwether crds | kubectl apply --server-side -f -
    """
    from bellwether.cli.installation.crds import crds as run

    run(**options)
