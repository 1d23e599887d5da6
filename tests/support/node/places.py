"""Where the node keeps what. In: nothing. Out: paths, all below one folder that ``down`` removes.

Inside the node ``/run``, ``/var/lib`` and ``/var/log`` are empty file systems of its own (``mounts``), so that programs
with fixed paths there leave nothing on the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from realparts import cache

HIDDEN = (Path("/run"), Path("/var/lib"), Path("/var/log"))
CONTAINERD_SOCKET = Path("/run/containerd/containerd.sock")
CGROUPS = Path("/sys/fs/cgroup")
CGROUP = "bellwether-node"
"""The group of all containers, in every hierarchy."""


@dataclass(frozen=True, slots=True)
class Places:
    """The folders and files of one node."""

    root: Path

    @property
    def logs(self) -> Path:
        """One log file for each of its programs, but for the API server's, and the first process's own."""
        return self.root / "logs"

    @property
    def first_log(self) -> Path:
        """What the node's first process says."""
        return self.logs / "node.log"

    @property
    def process(self) -> Path:
        """The id of the process on the host whose end is the node's end, and when it started."""
        return self.root / "process"

    @property
    def ready(self) -> Path:
        """There as soon as every program runs."""
        return self.root / "ready"

    @property
    def pids(self) -> Path:
        """A file for each program with its process id inside the node."""
        return self.root / "pids"

    @property
    def control_plane(self) -> Path:
        """The API server's folder: kubeconfigs, certificates, etcd's data, logs."""
        return self.root / "control-plane"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, good on the host and inside."""
        return self.control_plane / "kubeconfig"

    @property
    def settings(self) -> Path:
        """Files that its programs are configured by."""
        return self.root / "settings"

    @property
    def containerd(self) -> Path:
        """Images and the containers' file systems."""
        return self.root / "containerd"

    @property
    def kubelet(self) -> Path:
        """The pods' volumes."""
        return self.root / "kubelet"

    @property
    def volumes(self) -> Path:
        """For persistent volumes by host path."""
        return self.root / "volumes"


def places() -> Places:
    """Those of this machine's node, in the cache's folder."""
    return Places(cache.root() / "node")
