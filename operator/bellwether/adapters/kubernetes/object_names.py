"""Kubernetes object names from cluster ids, vantages and long policy names.

Different inputs never give the same name: a name that had to be changed gets a digest, and so does one that ends as if
it had one.
"""

from __future__ import annotations

import hashlib
import re

GROUP = "bellwether.dev"
POLICY_LABEL = f"{GROUP}/policy"
PROBER_LABEL = f"{GROUP}/prober"
BROKER_LABEL = f"{GROUP}/broker-id"
COMPONENT_LABEL = "app.kubernetes.io/component"
RUN_LABEL = f"{GROUP}/rebalance-run"

_LEGAL = re.compile(r"(?!.*-[0-9a-f]{10}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def legal(text: str, limit: int = 63) -> str:
    """``text`` if it is a DNS label of at most ``limit`` characters without a digest; else a readable prefix and its
    digest.
    """
    if len(text) <= limit and _LEGAL.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    stem = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[: limit - 11].rstrip("-")
    return f"{stem}-{digest}" if stem else f"x-{digest}"


def cluster_lease(cluster_id: str) -> str:
    """Name of the Lease of one Kafka cluster."""
    return f"bellwether-{legal(cluster_id, 52)}"


def prober_lease(policy: str, signal_type: str, source: str) -> str:
    """Name of the Lease of one prober."""
    return legal(f"bellwether-prober-{policy}-{signal_type.lower()}-{source}", 253)


def quarantine_order(namespace: str, policy: str, broker: int) -> str:
    """Name of the Lease that orders the hold of one broker. All policies' orders share a namespace.

    The chart makes the same names, for roles.
    """
    return f"bellwether-quarantine-{namespace}.{legal(policy)}-{broker}"


def undo_record(policy: str) -> str:
    """Name of the undo record's header. Its shards add ``.<number>``, which no header's name contains."""
    return f"bellwether-undo-{legal(policy, 230)}"


def audit_trail(policy: str) -> str:
    """Name prefix of the audit log's segments, which add ``.<number>``."""
    return f"bellwether-audit-{legal(policy, 230)}"


def broker_health(policy: str, broker: int) -> str:
    """Name of the BrokerHealth of one broker."""
    return f"{legal(policy, 240)}-{broker}"


def plan_job(policy: str, run: str) -> str:
    """Name of the Job that computes a load plan. The names of its pods add to it."""
    return legal(f"bellwether-plan-{policy}-{run}")


def prober_manager(signal_type: str, source: str) -> str:
    """Field manager under which one prober owns its entries."""
    return f"bellwether-prober-{legal(f'{signal_type.lower()}-{source}', 100)}"
