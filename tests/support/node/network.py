"""The node's network: a bridge for pods, and one link to the host. In: addresses. Out: interfaces and routes.

``prepare_inside`` is called by the node's first process, ``join`` and ``leave`` by the host's side.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from node.addresses import BRIDGE, GATEWAY, HOST_END, HOST_LINK, LINK_BITS, NETWORK, NODE_END, NODE_LINK
from waiting import until

LINK_SECONDS = 30.0
FORWARDING = ("net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables")
"""Without the second a pod's packets to a service that leads back to the same bridge would miss the rules."""


def prepare_inside() -> None:
    """Bring up loopback and the bridge, wait for the host's link and give it its address."""
    _ip("link", "set", "lo", "up")
    _ip("link", "add", BRIDGE, "type", "bridge")
    _ip("address", "add", f"{GATEWAY}/24", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")
    for setting in FORWARDING:
        Path("/proc/sys", setting).write_text("1")
    until(Path("/proc/sys/net/ipv4/conf", NODE_LINK).exists, LINK_SECONDS, f"the host's link {NODE_LINK} is there")
    _ip("address", "add", f"{NODE_END}/{LINK_BITS}", "dev", NODE_LINK)
    _ip("link", "set", NODE_LINK, "up")


def join(pid: int) -> None:
    """Lay the link between the host and the network namespace of that process, and the host's route to it."""
    _ip("link", "add", HOST_LINK, "type", "veth", "peer", "name", NODE_LINK, "netns", str(pid))
    _ip("address", "add", f"{HOST_END}/{LINK_BITS}", "dev", HOST_LINK)
    _ip("link", "set", HOST_LINK, "up")
    _ip("route", "add", NETWORK, "via", NODE_END, "dev", HOST_LINK)


def leave() -> None:
    """See to it that the host's end of the link is gone; the kernel takes it away a moment after the namespace."""
    if Path("/sys/class/net", HOST_LINK).exists():
        subprocess.run(["ip", "link", "delete", HOST_LINK], capture_output=True, check=False)


def _ip(*arguments: str) -> None:
    ended = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {ended.stderr.strip()}")
