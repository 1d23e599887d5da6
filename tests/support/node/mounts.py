"""What the node sees of the machine's file system. In: nothing. Out: mounts that only the node sees.

Called by the node's first process, before anything else. Everything is gone with the namespace.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from node.places import CGROUP, CGROUPS, HIDDEN, Places
from waiting import until

BUSY_SECONDS = 10.0
KUBELETS_WISHES: Mapping[str, int] = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
"""Settings of the whole machine that a kubelet makes at its start (``setupKernelTunables``)."""


def prepare(places: Places) -> None:
    """Hide folders with fixed names, and show the kubelet the kernel's settings as it wants them."""
    for hidden in HIDDEN:
        _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(hidden))
    for needed in ("/run/netns", "/run/lock", "/var/lib/cni", "/var/lib/kubelet"):
        Path(needed).mkdir()
    spare_the_kernel(Path("/run/sysctl"))
    for folder in (places.containerd, places.kubelet, places.volumes):
        folder.mkdir(parents=True, exist_ok=True)
    _mount("--make-rshared", "/")  # as volumes that propagate mounts need it; it ends at this namespace


def spare_the_kernel(folder: Path) -> None:
    """Put files that say what the kubelet wants over the kernel's own, so that it finds nothing to change."""
    for name, value in KUBELETS_WISHES.items():
        copy, real = folder / name, Path("/proc/sys", name)
        if real.exists() and real.read_text().strip() != str(value):
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(f"{value}\n")
            _mount("--bind", str(copy), str(real))


def snapshotter(folder: Path) -> str:
    """``overlayfs`` where this file system can carry one, else ``native``, which copies every layer."""
    lower, upper, work, merged = (folder / name for name in ("lower", "upper", "work", "merged"))
    for path in (lower, upper, work, merged):
        path.mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    command = ["mount", "-t", "overlay", "-o", options, "overlay", str(merged)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        return "native"
    subprocess.run(["umount", merged], check=True, capture_output=True)
    return "overlayfs"


def remove_cgroups(root: Path = CGROUPS) -> None:
    """Remove the groups of the node's containers, in every hierarchy; called on the host when all of it has ended."""
    for top in (root / CGROUP, *root.glob(f"*/{CGROUP}")):
        folders = [top, *(path for path in top.rglob("*") if path.is_dir())] if top.is_dir() else []
        for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
            _remove_group(folder)


def _remove_group(folder: Path) -> None:
    """The kernel calls a group busy for a moment after its last process is gone."""

    def gone() -> bool:
        with suppress(FileNotFoundError):
            folder.rmdir()
        return True

    until(gone, BUSY_SECONDS, f"{folder} can be removed", ignoring=(OSError,))


def _mount(*arguments: str) -> None:
    ended = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise RuntimeError(f"mount {' '.join(arguments)}: {ended.stderr.strip()}")
