"""``bellwether crds``: print the custom resource definitions, for ``kubectl apply --server-side -f -``."""

from __future__ import annotations

import click

from bellwether.api.v1alpha1.definitions import manifests


@click.command()
def crds() -> None:
    """Print the custom resource definitions that this version works with, as YAML.

    Install or upgrade them with: bellwether crds | kubectl apply --server-side -f -
    """
    click.echo(manifests(), nl=False)
