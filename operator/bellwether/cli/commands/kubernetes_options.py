"""Command-line options that name a Kubernetes API and a namespace; ``cli.kubernetes_target`` connects to it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands import completion

_CONTEXT = click.option(
    "--context", shell_complete=completion.contexts, help="Context of the kubeconfig.  [default: the current one]"
)
_KUBECONFIG = click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Kubeconfig file.  [default: KUBECONFIG, then the pod's ServiceAccount, then ~/.kube/config]",
)
_NAMESPACE = click.option(
    "--namespace",
    "-n",
    shell_complete=completion.namespaces,
    help="Namespace of the policy.  [default: that of the context]",
)


@dataclass(frozen=True)
class Target:
    """The policy, namespace and Kubernetes API that options name; None: the default."""

    policy: str | None = None
    namespace: str | None = None
    context: str | None = None
    kubeconfig: Path | None = None


def policy_option(what: str, default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option ``--policy``, with ``what`` the command does with it, and what it takes without it."""
    text = f"{what}  [default: {default}]"
    return click.option("--policy", metavar="NAME", shell_complete=completion.policies, help=text)


def with_namespaces(target: Target, policy: str | None, namespaces: Sequence[str]) -> Target:
    """The target of a command whose ``--namespace`` is repeatable: ``policy`` is of one namespace, else UsageError."""
    if policy and len(namespaces) > 1:
        raise click.UsageError("--policy requires a single --namespace: leave --policy out for all policies.")
    return replace(target, policy=policy, namespace=namespaces[0] if namespaces else None)


def policy_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--policy``, ``--namespace``, ``--context`` and ``--kubeconfig``; the command gets them as ``target``."""

    @functools.wraps(command)
    def run(policy: str | None, target: Target, **options: Any) -> Any:
        return command(target=replace(target, policy=policy), **options)

    return policy_option("LeadershipPolicy.", "the only one of the namespace")(namespaced(run))


def namespaced(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--namespace``, ``--context`` and ``--kubeconfig``; the command gets them as ``target``."""

    @functools.wraps(command)
    def run(namespace: str | None, context: str | None, kubeconfig: Path | None, **options: Any) -> Any:
        return command(target=Target(None, namespace, context, kubeconfig), **options)

    return _NAMESPACE(_CONTEXT(_KUBECONFIG(run)))


def clusterwide(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--context`` and ``--kubeconfig`` for a command on all namespaces; it gets them as ``target``."""

    @functools.wraps(command)
    def run(context: str | None, kubeconfig: Path | None, **options: Any) -> Any:
        return command(target=Target(None, None, context, kubeconfig), **options)

    return _CONTEXT(_KUBECONFIG(run))
