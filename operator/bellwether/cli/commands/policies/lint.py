"""``bellwether lint``: judge policy files offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--cluster",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Description of the cluster (as for `bellwether simulate`): racks that no broker is in are errors.",
)
@click.option("--strict", is_flag=True, help="Exit with status 4 for warnings, too.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "sarif", "junit"]),
    default="table",
    show_default=True,
    help="Output format; sarif and junit are for CI.",
)
def lint(**options: Any) -> None:
    """Check policy FILES without a cluster.

    FILES are YAML or JSON files, folders, or - for the standard input. Each LeadershipPolicy and BrokerHealth is judged
    as the API server would judge it, with line and column. Then the files are judged together: two policies for one
    cluster; vantages without probers, if there are Deployments of probers or values of the chart among the files;
    Secrets that are missing, lack the purpose label or are not in rbac.secretNames, if there are Secrets or values
    among them. Policies in values of the chart are checked, too; other objects are ignored.

    \b
    Exit status:
      0  no errors
      1  --cluster is no cluster description
      4  errors, or with --strict warnings
    """
    from bellwether.cli.policies.lint import lint as run

    run(**options)
