"""Is this machine one that a node can run on? In: the machine. Out: an error that names what is missing, or nothing.

What Debian's own packages bring is installed where it is missing, and said. Called by ``lifecycle``, first of all.
"""

from __future__ import annotations

import ipaddress
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from node.addresses import HOST_LINK, NETWORK
from node.places import HIDDEN
from realparts.progress import say, step
from waiting import ran

PACKAGES: Mapping[str, str] = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
    "cc": "gcc",
}
"""A program that must be on PATH, and the package that brings it."""
PLUGINS = Path("/usr/lib/cni")
"""The network plugins (containernetworking-plugins)."""
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
RELEASE = Path("/etc/os-release")


class NotHere(RuntimeError):
    """A node cannot run on this machine; the message says what is missing and what to do."""


def check(root: Path) -> None:
    """Install what is missing, and raise NotHere where that does not help. ``root`` is the node's folder."""
    if problem := unfit(platform.system(), os.geteuid(), RELEASE.read_text() if RELEASE.exists() else "", root):
        raise NotHere(problem)
    if taken := overlapping_route(_routes()):
        raise NotHere(
            f"the node's addresses {NETWORK} overlap with this machine's route to {taken}; it cannot run next to it"
        )
    if packages := missing_packages():
        say(f"missing here: {' '.join(packages)}")
        with step(f"installing Debian's packages {' '.join(packages)}"):
            install(packages)


def unfit(system: str, user: int, release: str, root: Path) -> str:
    """Why a machine of that system, user id and ``/etc/os-release`` will not do; empty if it will."""
    likes = {word for line in release.splitlines() if line.startswith(("ID=", "ID_LIKE=")) for word in _words(line)}
    if system != "Linux" or "debian" not in likes:
        name = " ".join(sorted(likes)) or system
        return f"a Kubernetes node needs Debian or one of its kin, for containerd and runc; this is {name}"
    if user != 0:
        return "a Kubernetes node needs root, for namespaces, mounts and control groups; try: sudo -E make cluster"
    if inside := next((hidden for hidden in HIDDEN if root.is_relative_to(hidden)), None):
        return (
            f"{root} is below {inside}, which the node hides from its programs; set BELLWETHER_CACHE to another folder"
        )
    return ""


def missing_packages() -> list[str]:
    """The Debian packages to install, each once."""
    path = f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}"
    wanted = {package for program, package in PACKAGES.items() if shutil.which(program, path=path) is None}
    if not (PLUGINS / "bridge").exists():
        wanted.add("containernetworking-plugins")
    return sorted(wanted)


def install(packages: list[str]) -> None:
    """Have apt install them. Raises NotHere with what it printed."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        ended = ran(["apt-get", "-q", *command], env=environment)
        if ended.returncode != 0:
            raise NotHere(f"apt-get {' '.join(command)} failed:\n{ended.stdout[-1500:]}{ended.stderr[-1500:]}")
    if left := missing_packages():
        raise NotHere(f"still missing after apt-get install: {' '.join(left)}")


def overlapping_route(routes: list[Mapping[str, str]]) -> str:
    """The first route of this machine, other than the node's own, that the node's network overlaps with; or empty."""
    ours = ipaddress.ip_network(NETWORK)
    for route in routes:
        target = route.get("dst", "default")
        if target == "default" or route.get("dev") == HOST_LINK:
            continue
        if ours.overlaps(ipaddress.ip_network(target, strict=False)):
            return target
    return ""


def _routes() -> list[Mapping[str, str]]:
    if shutil.which("ip", path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}") is None:
        return []  # it is installed with the rest
    answer = subprocess.run(["ip", "-json", "-4", "route", "show"], capture_output=True, text=True, check=True).stdout
    return list(json.loads(answer or "[]"))


def _words(line: str) -> list[str]:
    return line.partition("=")[2].strip().strip('"').split()
