"""Options that name a Kubernetes API, a namespace and a policy, and the client that they describe."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import click

from bellwether.adapters.kubernetes.api_client import DEFAULT_TIMEOUT_SECONDS, KubernetesClient
from bellwether.adapters.kubernetes.kubeconfig_files import check
from bellwether.cli import completion
from bellwether.cli.leadership import broker_lookup
from bellwether.cli.option_lists import Option, as_one

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


def broker_id(text: str) -> int:
    """The type of options and arguments that are the id of a broker."""
    if not re.fullmatch("[0-9]{1,10}", text):
        raise click.BadParameter(f"{text!r} is not a broker id: use a number; bellwether status lists the brokers")
    return int(text)


ANSWER_SECONDS = 3.0
"""How long a command waits for one answer of the API server, so that a person knows within 5 s that there is none."""


@dataclass(frozen=True)
class Target:
    """The policy, namespace and Kubernetes API that options name; None: the default."""

    policy: str | None = None
    namespace: str | None = None
    context: str | None = None
    kubeconfig: Path | None = None


def policy_option(what: str, default: str) -> Option:
    """The option ``--policy``, with ``what`` the command does with it, and what it takes without it."""
    text = f"{what}  [default: {default}]"
    return click.option("--policy", metavar="NAME", shell_complete=completion.policies, help=text)


_API = {"context": _CONTEXT, "kubeconfig": _KUBECONFIG}
_POLICY = policy_option("LeadershipPolicy.", "the only one of the namespace")

# Each adds options of its name; the command gets them as ``target``.
clusterwide = as_one("target", Target, _API)
namespaced = as_one("target", Target, {"namespace": _NAMESPACE, **_API})
policy_options = as_one("target", Target, {"policy": _POLICY, "namespace": _NAMESPACE, **_API})


def connect_policy(target: Target, timeout_seconds: float = ANSWER_SECONDS) -> broker_lookup.NamedPolicy:
    """A client, and namespace and name of the policy to use: without ``--policy`` the only one of the namespace.

    Raises as ``connect`` does, and Terminal if the namespace has no policy, or several.
    """
    api, namespace = connect(target, timeout_seconds)
    name = target.policy or broker_lookup.only_policy(api, namespace)
    return broker_lookup.NamedPolicy(api, namespace, name)


def connect(target: Target, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> tuple[KubernetesClient, str]:
    """A client, and the namespace to use. Raises Terminal if there is no such context, or no API is configured."""
    check(target.kubeconfig, target.context)
    from bellwether.adapters.kubernetes import api_client, kubeconfig

    found = kubeconfig.api_access(target.kubeconfig, target.context)
    return api_client.from_configuration(found.configuration, timeout_seconds), target.namespace or found.namespace
