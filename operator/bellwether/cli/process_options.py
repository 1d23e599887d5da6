"""Options of processes: logs, metrics, and which policies a prober or the sampler serves."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from bellwether.cli import completion
from bellwether.cli.kubernetes_target import Target, clusterwide, policy_option
from bellwether.cli.option_lists import Option, with_options
from bellwether.destinations import VARIABLE, Destination, Destinations

METRICS_PORT = click.option(
    "--metrics-port", type=click.IntRange(1, 65535), help="Port of /metrics, /healthz and /readyz."
)
METADATA_LIMIT = click.option(
    "--metadata-limit",
    "metadata_mebibytes",
    type=click.IntRange(8, 192),
    default=24,
    show_default=True,
    help="Largest metadata response that is read from a Kafka cluster, in MiB: 24 is enough for 200,000 partitions, 128"
    " for 2,000,000.",
)
LOG_FORMAT = click.option(
    "--log-format",
    type=click.Choice(["auto", "json", "console"]),
    default="auto",
    show_default=True,
    help="Log format; auto: console on a terminal, else json.",
)
LOG_LEVEL = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Minimum log level.",
)


def namespaces_option(text: str, default: str = "all") -> Option:
    """The repeatable option ``--namespace``, with what it does and what is taken without it."""
    text = f"{text}; repeatable.  [default: {default}]"
    complete = completion.namespaces
    return click.option("--namespace", "-n", "namespaces", multiple=True, shell_complete=complete, help=text)


def labelled_secrets_option(process: str) -> Option:
    """The option ``--labelled-secrets``, for a process whose permissions cover every Secret."""
    return click.option(
        "--labelled-secrets/--all-secrets",
        default=False,
        show_default=True,
        help=f"Let policies name only Secrets with the label bellwether.dev/purpose=kafka; for {process} whose"
        " permissions cover every Secret.",
    )


def _destination(text: str) -> Destination:
    try:
        return Destination.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


DESTINATIONS = click.option(
    "--allow-destination",
    "destinations",
    metavar="NETWORK|HOST[:PORT]",
    type=_destination,
    multiple=True,
    envvar=VARIABLE,
    show_envvar=True,
    callback=lambda _context, _parameter, allowed: Destinations(allowed),
    help="Let policies connect only to this network, address, host or *.DOMAIN, with all ports, :PORT or :FROM-TO;"
    " repeatable.  [default: anywhere but this machine, link-local and metadata addresses and the Kubernetes API, which"
    " need an entry for just that address or network]",
)

_SHARD = re.compile(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})")


def _shard(text: str) -> tuple[int, int]:
    """``2/3``: the second of three parts."""
    found = _SHARD.fullmatch(text)
    part, parts = (int(found[1]), int(found[2])) if found else (1, 0)
    if part > parts:
        raise click.BadParameter(f"{text!r} is not K/N with 1 <= K <= N: use a value such as 2/3")
    return part, parts


def selecting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets them as ``selection``, and their policy and Kubernetes API as ``policy`` and
    ``target``.
    """

    @functools.wraps(command)
    def run(
        target: Target,
        policy: str | None,
        namespaces: tuple[str, ...],
        everywhere: bool,
        shard: tuple[int, int],
        labelled_secrets: bool,
        destinations: Destinations,
        **options: Any,
    ) -> Any:
        from bellwether.probes.runtime.watched_policies import Selection

        if everywhere and (policy or namespaces):
            raise click.UsageError("--all-namespaces excludes --policy and --namespace: leave it out.")
        if policy and len(namespaces) > 1:
            raise click.UsageError("--policy requires a single --namespace: leave --policy out for all policies.")
        named = replace(target, policy=policy, namespace=namespaces[0] if namespaces else None)
        selection = Selection(destinations, policy, namespaces, everywhere, shard, labelled_secrets)
        return command(policy=policy, target=named, selection=selection, **options)

    return with_options(
        clusterwide,
        policy_option("LeadershipPolicy to serve.", "every policy of the namespaces"),
        namespaces_option("Namespace of the policies", "that of the context"),
        click.option("--all-namespaces", "-A", "everywhere", is_flag=True, help="Serve policies of all namespaces."),
        click.option(
            "--shard",
            metavar="K/N",
            type=_shard,
            default="1/1",
            show_default=True,
            help="Serve only part K of N of the policies, chosen by a hash of their names.",
        ),
        labelled_secrets_option("a process"),
        DESTINATIONS,
    )(run)
