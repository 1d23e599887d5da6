"""``bellwether lint``: judge policy files offline, as the API server would and beyond it."""

from __future__ import annotations

from pathlib import Path

import click

from bellwether.cli import exit_status
from bellwether.cli.output import OUTPUT, picked, print_document


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--cluster",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Description of the cluster (as for `bellwether simulate`): racks that no broker is in are errors.",
)
@click.option("--strict", is_flag=True, help="Exit with status 4 for warnings, too.")
@OUTPUT
def lint(files: tuple[str, ...], cluster: Path | None, strict: bool, output: str) -> None:
    """Check policy FILES without a cluster.

    FILES are YAML or JSON files, folders, or - for the standard input. Each LeadershipPolicy and BrokerHealth is judged
    as the API server would judge it, with line and column. Then the files are judged together: two policies for one
    cluster; vantages without probers, if there are Deployments of probers or values of the chart among the files;
    Secrets that are missing, lack the purpose label or are not in rbac.secretNames, if there are Secrets or values
    among them. Policies in values of the chart, in texts and in Kustomize patches are checked, too; what cannot be
    judged is noted as not checked, and other objects are ignored.

    \b
    Exit status:
      0  no errors
      1  --cluster is no cluster description
      4  errors, or with --strict warnings
    """
    from bellwether.cli.policies.object_checks import NOTE
    from bellwether.cli.policies.policy_files import check_files

    checked = check_files(files, _racks(cluster) if cluster is not None else None)
    problems = checked.problems
    if output == "table":
        click.echo(checked.table(problems))
    else:
        about = "severity rule object field message"
        found = [picked(p, "file") | picked(p.at, "line column") | picked(p, about) for p in problems]
        print_document({"files": sorted(checked.names), "problems": found}, output)
    if checked.errors or (strict and any(p.severity != NOTE for p in problems)):
        raise click.exceptions.Exit(exit_status.FOUND)


def _racks(cluster: Path) -> frozenset[str]:
    """The racks of a cluster description. Raises ClickException if it is none."""
    from bellwether.cli.policies.yaml_documents import described
    from bellwether.simulation.cluster_description import cluster_of

    try:
        return frozenset(broker.rack for broker in described(cluster, cluster_of).brokers.values() if broker.rack)
    except ValueError as error:
        raise click.ClickException(f"--cluster {error}") from None
