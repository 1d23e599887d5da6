"""Connect to the Kubernetes API and namespace that command-line options name."""

from __future__ import annotations

from bellwether.adapters.kubernetes.api_client import DEFAULT_TIMEOUT_SECONDS, KubernetesClient, from_configuration
from bellwether.adapters.kubernetes.kubeconfig import api_access
from bellwether.cli.commands.kubernetes_options import Target
from bellwether.cli.leadership import broker_lookup

ANSWER_SECONDS = 3.0
"""How long a command waits for one answer of the API server, so that a person knows within 5 s that there is none."""


def connect_policy(target: Target, timeout_seconds: float = ANSWER_SECONDS) -> tuple[KubernetesClient, str, str]:
    """A client, and namespace and name of the policy to use: without ``--policy`` the only one of the namespace.

    Raises as ``connect`` does, and Terminal if the namespace has no policy, or several.
    """
    api, namespace = connect(target, timeout_seconds)
    return api, namespace, target.policy or broker_lookup.only_policy(api, namespace)


def connect(target: Target, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> tuple[KubernetesClient, str]:
    """A client, and the namespace to use. Raises Terminal if there is no such context, or no API is configured."""
    found = api_access(target.kubeconfig, target.context)
    return from_configuration(found.configuration, timeout_seconds), target.namespace or found.namespace
