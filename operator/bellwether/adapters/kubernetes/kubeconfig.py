"""Which Kubernetes API and namespace to use, chosen as kubectl does: kubeconfig files, contexts, or the ServiceAccount.

In: ``--kubeconfig`` and ``--context``, ``KUBECONFIG``, the pod's files. Out: a configuration of the official client and
the namespace of the context. Of several files in ``KUBECONFIG`` the first that sets a value wins, and files that do not
exist are skipped.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger
from urllib3.util.ssl_ import create_urllib3_context

from bellwether.adapters.kubernetes.kubeconfig_files import by_service_account, check
from bellwether.adapters.kubernetes.kubeconfig_files import files as named_files
from bellwether.core.listing import few
from bellwether.ports.errors import Terminal

DEFAULT_NAMESPACE = "default"
_SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_SHOWN_CONTEXTS = 20


@dataclass(frozen=True)
class ApiAccess:
    """Configuration of the official client, and the namespace to use where none is named."""

    configuration: Any
    namespace: str


def api_access(kubeconfig: Path | None = None, context: str | None = None) -> ApiAccess:
    """The API and namespace of a context: of ``kubeconfig``, otherwise of ``KUBECONFIG``, otherwise the pod's
    ServiceAccount, otherwise of ``~/.kube/config``. Raises Terminal if there is none, or no such context.
    """
    check(kubeconfig, context)
    configuration = client.Configuration()
    if by_service_account(kubeconfig, context):
        try:
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException as error:
            raise Terminal(f"the pod's ServiceAccount cannot be used: {error}") from error
        return ApiAccess(configuration, _pod_namespace())
    files = named_files(kubeconfig)
    try:
        merged = KubeConfigMerger(files)
        contexts = {str(one["name"]): one["context"] for one in merged.config["contexts"]}
        chosen = context or _current(merged)
        if chosen not in contexts:
            raise Terminal(_unknown(files, chosen, sorted(contexts)))
        loader = KubeConfigLoader(
            merged.config, active_context=chosen, config_base_path=None, config_persister=merged.save_changes
        )
        loader.load_and_set(configuration)
        namespace = contexts[chosen].safe_get("namespace")
    except (config.ConfigException, yaml.YAMLError, OSError, AttributeError, KeyError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise Terminal(f"kubeconfig {files} cannot be used: {reason}; correct it, or set KUBECONFIG") from error
    return ApiAccess(configuration, str(namespace or DEFAULT_NAMESPACE))


def context_names(kubeconfig: Path | None = None) -> list[str]:
    """Names of the contexts of the files that ``api_access`` would read. Raises what reading them raises."""
    merged = KubeConfigMerger(named_files(kubeconfig))
    return sorted(str(one["name"]) for one in merged.config["contexts"])


def _current(merged: KubeConfigMerger) -> str:
    """The current context: that of the first file that sets one; empty if none does."""
    return next((str(one["current-context"]) for one in merged.config_files.values() if one.get("current-context")), "")


def _unknown(files: str, chosen: str, contexts: list[str]) -> str:
    there = f"there are: {few(contexts, _SHOWN_CONTEXTS)}" if contexts else "there are none"
    if not chosen:
        return f"kubeconfig {files} sets no current context: set --context; {there}"
    return f"kubeconfig {files} has no context {chosen!r}: set --context; {there}"


def _pod_namespace() -> str:
    """Namespace of the pod, by ``POD_NAMESPACE`` or the ServiceAccount's files."""
    if named := os.environ.get("POD_NAMESPACE"):
        return named
    try:
        return _SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="utf-8").strip() or DEFAULT_NAMESPACE
    except (OSError, UnicodeDecodeError):
        return DEFAULT_NAMESPACE


def as_kubectl(context: ssl.SSLContext) -> ssl.SSLContext:
    """The context without the check of all extensions of RFC 5280 (``VERIFY_X509_STRICT``), which kubectl has not.

    Python 3.13 requires them. The CAs of managed clusters often lack some, such as the authority key identifier. Chain,
    dates and names are verified.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def verify_as_kubectl(pool_settings: dict[str, Any]) -> None:
    """Use such a context in a urllib3 pool manager, which loads CAs and certificates into it."""
    pool_settings["ssl_context"] = as_kubectl(create_urllib3_context())
