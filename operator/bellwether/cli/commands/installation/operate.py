"""``bellwether operator``: run the operator: watch and reconcile LeadershipPolicies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.common_options import LOG_FORMAT, LOG_LEVEL, METADATA_LIMIT
from bellwether.controllers.policy_quota import PER_NAMESPACE
from bellwether.telemetry.heartbeat import STUCK_SECONDS

# A read of metadata may take longer, depending on --metadata-limit: the command checks that.
SHORTEST_BOUND_SECONDS = 10.0


@click.command()
@click.option(
    "--namespace", "-n", "namespaces", multiple=True, help="Watch only this namespace; repeatable.  [default: all]"
)
@click.option(
    "--lease-namespace",
    envvar="POD_NAMESPACE",
    default="default",
    show_default=True,
    help="Namespace of the Leases of Kafka clusters; the same for all operators of a Kubernetes cluster.",
)
@click.option(
    "--labelled-secrets/--all-secrets",
    default=False,
    show_default=True,
    help="Let policies name only Secrets with the label bellwether.dev/purpose=kafka; for an operator whose permissions"
    " cover every Secret.",
)
@click.option("--lease-duration", default=10, show_default=True, help="Duration of a Lease, in seconds.")
@click.option("--lease-renew", default=2.0, show_default=True, help="Renewal interval of a Lease, in seconds.")
@click.option("--metrics-port", default=9464, show_default=True, help="Port of /metrics; 0: off.")
@click.option("--health-port", default=8080, show_default=True, help="Port of /healthz and /readyz; 0: off.")
@click.option(
    "--stuck-after",
    type=click.FloatRange(SHORTEST_BOUND_SECONDS),
    default=STUCK_SECONDS,
    show_default=True,
    help="Report a thread as stuck, and 503 at /healthz, after this many seconds without progress.",
)
@click.option(
    "--max-policies-per-namespace",
    "max_policies",
    type=click.IntRange(0),
    default=PER_NAMESPACE,
    show_default=True,
    help="Reconcile at most this many policies of a namespace, the oldest ones; 0: all.",
)
@click.option(
    "--load-config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML file with the stores and job profiles of load rebalancing.  [default: none, no policy rebalances]",
)
@METADATA_LIMIT
@LOG_FORMAT
@LOG_LEVEL
def operator(**options: Any) -> None:
    """Run the operator: reconcile LeadershipPolicies.

    Moves leaders away from sick brokers and restores them after recovery. Connects to the Kubernetes API with
    KUBECONFIG or the pod's ServiceAccount. Several replicas may run: for each Kafka cluster one of them holds the Lease
    and acts, the others are on standby.
    """
    from bellwether.cli.installation.operate import operator as run

    run(**options)
