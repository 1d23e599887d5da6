"""Options that several commands have."""

from __future__ import annotations

import os
from pathlib import Path

import click


def context_namespace() -> str:
    """Namespace of the kubeconfig's current context, which kubectl uses, too; ``default`` if there is none."""
    import yaml  # help and completion import nothing that only running needs

    current, found = "", {}
    for path in os.environ.get("KUBECONFIG", "~/.kube/config").split(os.pathsep):
        try:
            body = yaml.safe_load(Path(path).expanduser().read_text())
            current = current or str(body.get("current-context") or "")
            found = {one["name"]: one["context"].get("namespace") for one in body.get("contexts") or ()} | found
        except (OSError, ValueError, yaml.YAMLError, AttributeError, KeyError, TypeError):
            continue  # the client reports a file that it cannot use
    return found.get(current) or "default"


NAMESPACE = click.option(
    "--namespace",
    "-n",
    default=context_namespace,
    show_default="that of the kubeconfig's context",
    help="Namespace of the policy.",
)
OUTPUT = click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
METRICS_PORT = click.option(
    "--metrics-port", type=click.IntRange(1, 65535), help="Port of /metrics, /healthz and /readyz."
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
