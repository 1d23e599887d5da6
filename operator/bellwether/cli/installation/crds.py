"""``bellwether crds``: print the custom resource definitions, for ``kubectl apply --server-side -f -``."""

from __future__ import annotations

import click


@click.command()
def crds() -> None:
    """Print the custom resource definitions (CRDs) as YAML.

    Install or upgrade them with:

    \b
    bellwether crds | kubectl apply --server-side -f -
    """
    from bellwether.api.v1alpha1.schema.crd_manifests import manifests

    click.echo(manifests(), nl=False)
