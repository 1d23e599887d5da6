"""``bellwether crds``: print the custom resource definitions, for ``kubectl apply --server-side -f -``."""

from __future__ import annotations

import click

from bellwether.api.v1alpha1.schema.crd_manifests import manifests


def crds() -> None:
    """Print the custom resource definitions of this version as YAML."""
    click.echo(manifests(), nl=False)
