"""Pods of brokers, as a StatefulSet makes them: numbered, ready by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def pod(
    number: int,
    name: str = "kafka",
    *,
    ready: bool = True,
    leaving: bool = False,
    phase: str = "Running",
    labels: Mapping[str, str] | None = None,
    sidecar_ready: bool = True,
) -> dict[str, Any]:
    """One pod's body: a broker after its sidecar."""
    metadata: dict[str, Any] = {"name": f"{name}-{number}", "namespace": "default"}
    metadata["labels"] = {"app": "kafka"} if labels is None else dict(labels)
    if leaving:
        metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["test/stays"]}
    containers = {"sidecar": sidecar_ready, "kafka": ready}
    status = {
        "phase": phase,
        "conditions": [{"type": "Ready", "status": str(ready and sidecar_ready)}],
        "containerStatuses": [
            {"name": one, "ready": is_ready, "image": one, "imageID": one, "restartCount": 0}
            for one, is_ready in containers.items()
        ],
    }
    return {"metadata": metadata, "spec": {"containers": [{"name": c} for c in containers]}, "status": status}
