"""Which kubeconfig files are read. It imports no client: a command knows early that there is no API."""

from __future__ import annotations

import os
from pathlib import Path

from bellwether.ports.errors import Terminal

SERVICE_HOST = "KUBERNETES_SERVICE_HOST"
"""The kubelet sets it in each container."""


def by_service_account(kubeconfig: Path | None, context: str | None) -> bool:
    """Whether the pod's ServiceAccount is used."""
    return not (kubeconfig or context or os.environ.get("KUBECONFIG")) and SERVICE_HOST in os.environ


def files(kubeconfig: Path | None) -> str:
    """The files that are merged, as in ``KUBECONFIG``."""
    return str(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")


def check(kubeconfig: Path | None, context: str | None) -> None:
    """Raise Terminal if neither a file nor a ServiceAccount names a Kubernetes API."""
    named = files(kubeconfig)
    exists = any(Path(one).expanduser().exists() for one in named.split(os.pathsep) if one)
    if not exists and not by_service_account(kubeconfig, context):
        raise Terminal(f"no Kubernetes API is configured: {named} does not exist: run in a cluster, or set KUBECONFIG")
