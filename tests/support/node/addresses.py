"""Which addresses and names the node uses. In: nothing. Out: constants. There is one node on a machine at a time.

Its network has no way out: the host and the node see each other over one link, and nothing routes further.
"""

from __future__ import annotations

NODE = "node"
"""The node's name in Kubernetes."""

NETWORK = "10.213.0.0/16"
"""All of the below; the host reaches it through the link."""

PODS = "10.213.0.0/24"
GATEWAY = "10.213.0.1"
"""The pods' bridge, the node's own address, and where the API server is for pods."""
FIRST_POD = "10.213.0.10"
BRIDGE = "pods0"

SERVICES = "10.213.128.0/20"
API_SERVICE = "10.213.128.1"
DNS_SERVICE = "10.213.128.10"
DOMAIN = "cluster.local"

LINK_BITS = 30
HOST_END = "10.213.255.1"
NODE_END = "10.213.255.2"
"""Where the host finds the API server."""
HOST_LINK = "bellwether0"
NODE_LINK = "host0"
API_PORT = 6443

API_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{DOMAIN}")
