"""Kubernetes object names from cluster ids, vantages and policy names.

Different inputs never give the same name. Each kind of object has a prefix of its own. What Kafka says always gets a
digest. Parts that are DNS labels are joined by a dot, which no label contains; a part that had to be changed, or ends
as if it had a digest, gets one. A BrokerHealth is ``POLICY-BROKER``, as people type it: the last dash ends the policy.
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

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LEGAL = re.compile(rf"(?!.*-[0-9a-f]{{10}}\Z){_LABEL}")
_THREE_LABELS = re.compile(rf"(?=.{{,235}}\Z){_LABEL}(\.{_LABEL}){{2}}")


def legal(text: str, limit: int = 63) -> str:
    """``text`` if it is a DNS label of at most ``limit`` characters without a digest; else a readable prefix and its
    digest.
    """
    if len(text) <= limit and _LEGAL.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return f"{_stem(text)[: limit - 11].rstrip('-') or 'x'}-{digest}"


def _stem(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def digested(text: str, limit: int = 63) -> str:
    """A readable prefix of ``text`` and 16 digits of its digest, at most ``limit`` characters."""
    stem = _stem(text)[: limit - 17].rstrip("-")
    return f"{stem or 'x'}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def cluster_lease(cluster_id: str) -> str:
    """Name of the Lease of one Kafka cluster."""
    return f"bellwether-cluster-{digested(cluster_id, 44)}"


def prober_lease(policy: str, signal_type: str, source: str) -> str:
    """Name of the Lease of one prober. Admission expects the same names."""
    plain = f"{policy}.{signal_type.lower()}.{source}"
    return f"bellwether-prober-{plain if _THREE_LABELS.fullmatch(plain) else digested(plain, 235)}"


def quarantine_order(namespace: str, policy: str, broker: int) -> str:
    """Name of the Lease that orders the hold of one broker. All policies' orders share a namespace.

    The chart makes the same names, for roles.
    """
    return f"bellwether-quarantine-{namespace}.{legal(policy)}-{broker}"


def undo_record(policy: str) -> str:
    """Name of the undo record's header. Its shards add ``.<number>``, which no header's name contains."""
    return f"bellwether-undo-{legal(policy, 230)}"


def export(policy: str, uid: str = "") -> str:
    """Name of an exported undo record; another namespace than the policy's adds ``.NAMESPACE``."""
    return f"bellwether-export-{legal(policy, 150)}.{uid[:8] or 'unknown'}"


def audit_trail(policy: str) -> str:
    """Name prefix of the audit log's segments, which add ``.<number>``."""
    return f"bellwether-audit-{legal(policy, 230)}"


def broker_health(policy: str, broker: int) -> str:
    """Name of the BrokerHealth of one broker."""
    return f"{legal(policy, 240)}-{broker}"


def plan_job(policy: str, run: str) -> str:
    """Name of the Job that computes a load plan. The names of its pods add to it."""
    return f"bellwether-plan-{digested(f'{policy}.{run}', 47)}"


def prober_manager(signal_type: str, source: str) -> str:
    """Field manager under which one prober owns its entries."""
    return f"bellwether-prober-{legal(f'{signal_type.lower()}-{source}', 100)}"
